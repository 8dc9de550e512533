"""Generate extension (Triton): plain JSON for text models, with one response or a stream.

{"text_input": "...", "parameters": {"temperature": 0.5}}  ->  {"model_name", "model_version", "text_output": "..."}

A member that is named like an input of the model becomes that input, wherever it is; any other becomes a parameter.
"""

from collections.abc import Callable, Mapping
from typing import Any

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import InvalidArgument, ServingError
from serving_runtime.common.request import Cancellable, InferRequest, InferResponse, Outcome, Streaming, Tensor
from serving_runtime.common.side_thread import InOrder
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.tensors import ModelTensor
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.api.decode_body import begun
from serving_runtime.protocol.http.api.routes import EVENTS, Call, Route, of_versions
from serving_runtime.protocol.http.api.sse import EventStream
from serving_runtime.protocol.http.codec.infer_head import request_id
from serving_runtime.protocol.http.codec.render_response import outcome_takes_long, takes_long, text_chunks
from serving_runtime.protocol.http.wire.message import JSON, Reply, Request, Response, error_response
from serving_runtime.protocol.rows import header_line
from serving_runtime.protocol.tensors import json_tensors, parameters


def routes(engine: Engine, complete: Callable[[InferRequest, Request], InferRequest]) -> list[Route]:
    """Return the routes of the generate extension; `complete` adds the headers' information to a request."""

    def decoded(call: Call, begin: Callable[[InferRequest], Cancellable]) -> Cancellable:
        config = engine.servable(call.model, call.version).config

        def decode() -> InferRequest:
            return complete(request_of(call.content(), config, call.version, call.model), call.request)

        return begun(call, engine, decode, begin)

    def generate(call: Call) -> Cancellable:
        def begin(request: InferRequest) -> Cancellable:
            once = _Once(call.reply)
            once.job = engine.stream(request, once.on_done)
            return once.job

        return decoded(call, begin)

    def generate_stream(call: Call) -> Cancellable:
        def begin(request: InferRequest) -> Cancellable:
            empty_final = request.parameters.get("triton_enable_empty_final_response") is True
            events = EventStream(call.reply, text_of, shows_empty_final=empty_final)
            events.job = engine.stream(request, events.on_done)
            return events.job

        return decoded(call, begin)

    return [
        *of_versions(
            "POST",
            "/generate",
            "inference",
            "Generate a response from plain JSON",
            generate,
            takes="GenerateRequest",
            gives="GenerateResponse",
        ),
        *of_versions(
            "POST",
            "/generate_stream",
            "inference",
            "Generate responses from plain JSON, as server-sent events",
            generate_stream,
            takes="GenerateRequest",
            gives=EVENTS,
        ),
    ]


def request_of(content: Mapping[str, Any], config: ModelConfig, version: str, model: str) -> InferRequest:
    """Return the request in a body's JSON object; raises InvalidArgument or Unsupported."""
    inputs = {tensor.name: tensor for tensor in config.inputs}
    found: dict[str, Tensor] = {}
    own: dict[str, Any] = {}
    nested = content.get("parameters", {})
    if not isinstance(nested, dict):
        raise InvalidArgument("the request's 'parameters' must be an object")
    for name, value in (*content.items(), *nested.items()):
        if name in inputs:
            if name in found:
                raise InvalidArgument(f"input '{name}' is given twice")
            found[name] = _tensor(inputs[name], value, batched=config.max_batch_size > 0)
        elif name not in ("id", "parameters"):
            own[name] = value
    return InferRequest(
        model,
        version,
        tuple(found.values()),
        id=request_id(dict(content)) if "id" not in inputs else "",
        parameters=parameters.checked(own) if own else parameters.checked(None),
    )


def text_of(response: InferResponse) -> bytes:
    """Return a response as one line of JSON: outputs and parameters beside the model's name; raises ServingError."""
    content: dict[str, Any] = {"model_name": response.model_name, "model_version": response.model_version}
    if response.id:
        content["id"] = response.id
    content.update(response.parameters)
    for name, datatype, array in response.outputs:
        values = json_tensors.encode(array, datatype, name)
        content[name] = values[0] if len(values) == 1 else values
    return b"".join(text_chunks(content, is_long=takes_long(response.outputs)))


class _Once:
    """Answers with the only response."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._answer: Response | None = None
        self._over = False
        self._texts: InOrder[Outcome] = InOrder(outcome_takes_long, _text_if_any, self._take)
        self.job: Streaming | None = None

    def on_done(self, outcome: Outcome) -> None:
        self._texts.take(outcome)

    def _take(self, outcome: Outcome, text: bytes | ServingError | None) -> None:
        if self._over:
            return
        if isinstance(text, ServingError):
            self._give_up(text)
            return
        if text is not None:
            if self._answer is not None:
                self._refuse("more than one response")
                return
            rows = 1 if isinstance(outcome, ServingError) else outcome.rows
            self._answer = Response(200, JSON + header_line(rows), (text,), len(text))
        if not isinstance(outcome, ServingError) and outcome.final:
            if self._answer is None:
                self._refuse("no response")
            else:
                self._reply(self._answer)

    def _refuse(self, found: str) -> None:
        self._give_up(InvalidArgument(f"generate expects the model to give exactly 1 response, found {found}; "
                                      "use generate_stream"))  # fmt: skip

    def _give_up(self, error: ServingError) -> None:
        self._over = True
        if self.job is not None:
            self.job.cancel()
        self._reply(error_response(error))


def _text_if_any(outcome: Outcome) -> bytes | None:
    if isinstance(outcome, ServingError):
        raise outcome
    return text_of(outcome) if outcome.outputs else None


def _tensor(wanted: ModelTensor, value: Any, *, batched: bool) -> Tensor:
    """Return an input of shape [n], [1, n] where batched, or [] for a scalar, from one value or a list of them."""
    values = value if isinstance(value, list) else [value]
    shape = (1, len(values)) if batched else (len(values),)
    array: Array = json_tensors.decode(values, wanted.datatype, shape, wanted.name)
    if not (wanted.dims or batched) and not isinstance(value, list):
        array = array.reshape(())
    return Tensor(wanted.name, wanted.datatype, array)
