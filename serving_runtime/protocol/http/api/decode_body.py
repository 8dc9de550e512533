"""Request body decoding: small bodies at once, large ones off the event loop."""

from collections.abc import Callable
from typing import TypeVar

from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable
from serving_runtime.engine.serving import refusals
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.api.routes import Call
from serving_runtime.protocol.http.wire.message import error_response
from serving_runtime.protocol.tensors.decoding import SLOW_BYTES, Decoding

Found = TypeVar("Found")


def begun(
    call: Call,
    engine: Engine,
    decode: Callable[[], Found],
    begin: Callable[[Found], Cancellable],
    *,
    slow: bool | None = None,
) -> Cancellable:
    """Decode a request and start it; its refusal is counted with its model.

    Args:
        slow: whether to decode it off the event loop; None to decide by the size of its body.
    """

    def counted(error: ServingError) -> None:
        refusals.count(engine, call.model, call.version, error)

    if len(call.request.body) > SLOW_BYTES if slow is None else slow:
        return Decoding(decode, begin, counted, lambda error: call.reply(error_response(error)))
    try:
        found = decode()
    except ServingError as error:
        counted(error)
        raise
    return begin(found)
