"""V1 protocol (TensorFlow Serving, KServe): predict by rows or by columns.

{"instances": [row, ...]}      -> {"predictions": [row, ...]}     a row is a value, or {input: value} for several inputs
{"inputs": value or {...}}     -> {"outputs": value or {...}}     a value holds the whole batch

Values are nested like the tensor; {"b64": "..."} is the bytes of one BYTES element.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from serving_runtime.common.datatypes import BYTES, MAX_DIMS, Array
from serving_runtime.common.errors import InvalidArgument, NotFound, Unsupported
from serving_runtime.common.request import Cancellable, InferRequest, InferResponse, Outcome, Tensor
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.tensors import ModelTensor
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.api.decode_body import begun
from serving_runtime.protocol.http.api.routes import Call, Route
from serving_runtime.protocol.http.codec.render_response import json_answer, rendered, takes_long
from serving_runtime.protocol.http.wire.message import Reply, Request, Response, json_response
from serving_runtime.protocol.tensors import binary, json_tensors

_SIGNATURE = "serving_default"

Shown: TypeAlias = Callable[[InferResponse], dict[str, Any]]
"""What a kind of answer shows of a response; raises ServingError."""


def routes(engine: Engine, complete: Callable[[InferRequest, Request], InferRequest]) -> list[Route]:
    """Return the routes of V1; `complete` adds the headers' information to a request."""
    views = _Views(engine, complete)
    refused = [
        Route("POST", f"/v1/models/{{model}}{version}:{verb}", "inference", "Not supported: no such call", _refuse)
        for verb in ("classify", "regress")
        for version in ("", "/versions/{version}")
    ]
    explained = [
        Route("POST", path, "inference", "Explain", views.explain, "PredictRequest", "ExplainResponse")
        for path in ("/v1/models/{model}:explain", "/v1/models/{model}/versions/{version}:explain")
    ]
    return [
        *refused,
        *explained,
        Route("GET", "/v1/models", "metadata", "List the names of ready models", views.models, gives="Models"),
        Route(
            "GET",
            "/v1/models/{model}",
            "metadata",
            "Get the versions of a model with their states",
            views.status,
            gives="V1Model",
        ),
        Route(
            "GET",
            "/v1/models/{model}/versions/{version}",
            "metadata",
            "Get the state of a version",
            views.status,
            gives="V1Model",
        ),
        Route(
            "POST",
            "/v1/models/{model}:predict",
            "inference",
            "Predict",
            views.predict,
            "PredictRequest",
            "PredictResponse",
        ),
        Route(
            "POST",
            "/v1/models/{model}/versions/{version}:predict",
            "inference",
            "Predict",
            views.predict,
            "PredictRequest",
            "PredictResponse",
        ),
    ]


class _Views:
    def __init__(self, engine: Engine, complete: Callable[[InferRequest, Request], InferRequest]) -> None:
        self._engine = engine
        self._complete = complete

    def models(self, _call: Call) -> Response:
        return json_response({"models": self._engine.ready_names()})

    def status(self, call: Call) -> Response:
        """Return the fields of both KServe and TensorFlow Serving, for clients of either."""
        served = self._engine.selected(call.model, call.version)
        versions = [
            {"version": servable.version, "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
            for servable in served
        ]
        ready = self._engine.model_ready(call.model, call.version)
        return json_response({"name": served[0].name, "ready": ready, "model_version_status": versions})

    def predict(self, call: Call) -> Cancellable:
        config = self._engine.servable(call.model, call.version).config

        def decode() -> tuple[bool, InferRequest]:
            by_row, request = request_of(call.content(), config, call.version, call.model)
            return by_row, self._complete(request, call.request)

        def begin(found: tuple[bool, InferRequest]) -> Cancellable:
            by_row, request = found
            return self._engine.infer(request, _answer(call.reply, predictions if by_row else outputs))

        return begun(call, self._engine, decode, begin)

    def explain(self, call: Call) -> Cancellable:
        servable = self._engine.servable(call.model, call.version)

        def decode() -> InferRequest:
            servable.check_explains()
            _, request = request_of(call.content(), servable.config, call.version, call.model)
            return self._complete(request, call.request)

        def begin(request: InferRequest) -> Cancellable:
            return self._engine.explain(request, _answer(call.reply, explanations))

        return begun(call, self._engine, decode, begin)


def _refuse(_call: Call) -> Response:
    raise Unsupported('of V1 predict and explain are offered; send {"instances": [...]} to :predict')


def request_of(content: Mapping[str, Any], config: ModelConfig, version: str, model: str) -> tuple[bool, InferRequest]:
    """Return whether a predict request is by rows, and the request; raises InvalidArgument, NotFound or Unsupported."""
    signature = content.get("signature_name", _SIGNATURE)
    if signature not in (_SIGNATURE, ""):
        raise NotFound(f"model '{config.name}' has no signature '{signature}'; it has {_SIGNATURE}")
    if ("instances" in content) == ("inputs" in content):
        raise InvalidArgument("the request must have 'instances', which are rows, or 'inputs', which are columns")
    by_row = "instances" in content
    columns = _columns_of_rows(content["instances"], config) if by_row else _columns(content["inputs"], config)
    inputs = {tensor.name: tensor for tensor in config.inputs}
    for name in columns:
        if name not in inputs:
            raise InvalidArgument(f"model '{config.name}' has no input '{name}'; its inputs are {', '.join(inputs)}")
    batched = config.max_batch_size > 0
    found = tuple([_tensor(inputs[name], values, batched=batched) for name, values in columns.items()])
    return by_row, InferRequest(model, version, found)


def predictions(response: InferResponse) -> dict[str, Any]:
    """Return the answer by rows: values of the only output, or an object of outputs per row; raises ServingError."""
    values = {name: _values(tensor) for name, tensor in _by_name(response).items()}
    if len(values) == 1:
        return {"predictions": next(iter(values.values()))}
    if len({len(column) for column in values.values()}) > 1:
        raise InvalidArgument("the outputs have different numbers of rows; ask by columns, with 'inputs'")
    rows = zip(*values.values(), strict=True)
    return {"predictions": [dict(zip(values, row, strict=True)) for row in rows]}


def outputs(response: InferResponse) -> dict[str, Any]:
    """Return the answer by columns: the only output's values, or an object of outputs; raises ServingError."""
    values = {name: _values(tensor) for name, tensor in _by_name(response).items()}
    return {"outputs": next(iter(values.values())) if len(values) == 1 else values}


def explanations(response: InferResponse) -> dict[str, Any]:
    """Return an explanation: the only output's values, an object of outputs per row, or else of outputs."""
    rows = {tensor.array.shape[:1] for tensor in response.outputs}
    if len(rows) == 1:
        return {"explanations": predictions(response)["predictions"]}
    return {"explanations": {tensor.name: _values(tensor) for tensor in response.outputs}}


def _answer(reply: Reply, shown: Shown) -> Callable[[Outcome], None]:
    return lambda outcome: rendered(outcome, reply, _render, _is_long, shown)


def _is_long(response: InferResponse, _: Shown) -> bool:
    return takes_long(response.outputs)


def _render(response: InferResponse, shown: Shown) -> Response:
    return json_answer(shown(response), response.rows, is_long=takes_long(response.outputs))


def _columns_of_rows(rows: Any, config: ModelConfig) -> dict[str, list[Any]]:
    if type(rows) is not list or not rows:
        raise InvalidArgument("'instances' must be an array that is not empty")
    if not _is_named(rows[0]):
        return {_only_input(config): rows}
    names = list(rows[0])
    for row in rows:
        if not _is_named(row) or set(row) != set(names):
            raise InvalidArgument(f"each of 'instances' must be an object of the same inputs: {', '.join(names)}")
    return {name: [row[name] for row in rows] for name in names}


def _columns(values: Any, config: ModelConfig) -> dict[str, Any]:
    return dict(values) if _is_named(values) else {_only_input(config): values}


def _is_named(value: Any) -> bool:
    return type(value) is dict and set(value) != {"b64"}


def _only_input(config: ModelConfig) -> str:
    if len(config.inputs) != 1:
        names = ", ".join(tensor.name for tensor in config.inputs)
        raise InvalidArgument(f"model '{config.name}' has several inputs, name each: {names}")
    return config.inputs[0].name


def _tensor(wanted: ModelTensor, values: Any, *, batched: bool) -> Tensor:
    """Return an input shaped by the nesting of its values; with one dimension missing, that one is 1."""
    nested = values if type(values) is list else [values]
    shape: list[int] = []
    inner: Any = nested
    while type(inner) is list and len(shape) <= MAX_DIMS:
        shape.append(len(inner))
        inner = inner[0] if inner else None
    dims = binary.checked_shape(shape, wanted.name)
    array: Array
    if wanted.datatype is BYTES:
        array = binary.bytes_array([_bytes(item, wanted.name) for item in json_tensors.flat(nested, dims, wanted.name)])
        array = array.reshape(dims)
    else:
        array = json_tensors.decode(nested, wanted.datatype, dims, wanted.name)
    if not (wanted.dims or batched) and type(values) is not list:
        array = array.reshape(())
    elif len(dims) == len(wanted.dims) + batched - 1 and wanted.dims[-1:] in ((1,), (-1,)):
        array = array.reshape((*dims, 1))
    return Tensor(wanted.name, wanted.datatype, array)


def _bytes(item: Any, tensor: str) -> bytes:
    if type(item) is str:
        return item.encode()
    if type(item) is dict and type(item.get("b64")) is str and len(item) == 1:
        try:
            return base64.b64decode(item["b64"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidArgument(f"input '{tensor}' has a 'b64' that is not base64: {error}") from error
    raise InvalidArgument(f"input '{tensor}': BYTES data must be strings or {{\"b64\": string}}")


def _by_name(response: InferResponse) -> dict[str, Tensor]:
    return {tensor.name: tensor for tensor in response.outputs}


def _values(tensor: Tensor) -> Any:
    """Return an output's values for orjson, nested by its shape."""
    name, datatype, array = tensor
    if datatype is BYTES:
        flat: list[Any] = [_text(element) for element in array.ravel()]
        for dim in reversed(array.shape[1:]):
            flat = [flat[start : start + dim] for start in range(0, len(flat), dim)] if dim else []
        return flat if array.shape else flat[0]
    numbers = json_tensors.encode(array, datatype, name)
    return numbers.reshape(array.shape) if array.shape else numbers[0].item()


def _text(element: bytes) -> dict[str, str] | str:
    try:
        return element.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(element).decode()}
