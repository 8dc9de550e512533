"""Response rendering: small answers at once, large ones off the event loop.

The counterpart of decode_body.py.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from serving_runtime.common import side_thread
from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import InferResponse, Outcome, Tensor
from serving_runtime.protocol.http.codec import json_writer
from serving_runtime.protocol.http.wire.message import JSON, Reply, Response, error_response
from serving_runtime.protocol.rows import header_line
from serving_runtime.protocol.tensors import binary

Form = TypeVar("Form")


def takes_long(outputs: Iterable[Tensor]) -> bool:
    """Return whether outputs take long to render as JSON."""
    return any(binary.takes_long(array, datatype) for _, datatype, array in outputs)


def outcome_takes_long(outcome: Outcome) -> bool:
    return not isinstance(outcome, ServingError) and takes_long(outcome.outputs)


def rendered(
    outcome: Outcome,
    reply: Reply,
    render: Callable[[InferResponse, Form], Response],
    is_long: Callable[[InferResponse, Form], bool],
    form: Form,
) -> None:
    """Reply with an outcome of the engine, now or later.

    Args:
        render: returns the answer in that form; raises ServingError where it cannot render it.
        is_long: returns whether to render off the event loop.
        form: of the answer, as the two take it.
    """
    if isinstance(outcome, ServingError):
        reply(error_response(outcome))
        return
    if is_long(outcome, form):
        side_thread.then(
            lambda: render(outcome, form),
            lambda found: reply(error_response(found) if isinstance(found, ServingError) else found),
        )
        return
    try:
        response = render(outcome, form)
    except ServingError as error:
        response = error_response(error)
    reply(response)


def text_chunks(content: Any, *, is_long: bool) -> tuple[bytes, ...]:
    """Return JSON in one piece, or in several where writing takes long."""
    return tuple(json_writer.pieces(content)) if is_long else (json_writer.whole(content),)


def json_answer(content: Any, rows: int, *, is_long: bool) -> Response:
    """Return the answer to a request of so many rows."""
    chunks = text_chunks(content, is_long=is_long)
    return Response(200, JSON + header_line(rows), chunks, sum(map(len, chunks)))
