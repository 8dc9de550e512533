"""CloudEvents 1.0 of a recorded request and its responses, in V2's JSON form. Pure.

Types are those of KServe's payload logger, so that its consumers read these events. FP16 and BF16, and what V2's JSON
cannot carry (NaN, infinity, bytes that are not text), are base64 of the tensor's binary form instead, marked by the
tensor's parameters: {"encoding": "base64"}. Nothing is rounded: floats are written in the shortest digits that read
back the same.
"""

import struct
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from serving_runtime.common.datatypes import BYTES, Array
from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import InferRequest, Outcome, Tensor
from serving_runtime.common.statuses import grpc_status
from serving_runtime.telemetry.tap.writing import Binary

REQUEST_TYPE = "org.kubeflow.serving.inference.request"
RESPONSE_TYPE = "org.kubeflow.serving.inference.response"

_WITHOUT_JSON = frozenset({"FP16", "BF16"})


class Exchange(NamedTuple):
    """One exchange of a recorded request: the request itself or a response.

    Attributes:
        number: 0 for the request itself, then 1, 2, ... for its responses.
        outcome: None for the request itself.
        at: with its time zone.
    """

    request_id: str
    number: int
    request: InferRequest
    outcome: Outcome | None
    at: datetime


def event(exchange: Exchange, source: str) -> dict[str, Any]:
    """Return the event of a request or a response, for `writing`; `requestid` joins them."""
    request, outcome = exchange.request, exchange.outcome
    version = request.model_version
    if outcome is None:
        data = _request_data(request)
    elif isinstance(outcome, ServingError):
        data = {"error": outcome.message}
    else:
        version = outcome.model_version
        data = {"model_name": outcome.model_name, "model_version": version, "id": outcome.id}
        data |= _parameters(outcome.parameters) | {"outputs": [tensor(output) for output in outcome.outputs]}
    return {
        "specversion": "1.0",
        "id": f"{exchange.request_id}:{exchange.number}",
        "source": source,
        "type": REQUEST_TYPE if outcome is None else RESPONSE_TYPE,
        "subject": request.model_name,
        "time": exchange.at.isoformat(timespec="microseconds"),
        "requestid": exchange.request_id,
        "modelname": request.model_name,
        **({"modelversion": version} if version else {}),
        **({"errorcode": grpc_status(outcome)} if isinstance(outcome, ServingError) else {}),
        "datacontenttype": "application/json",
        "data": data,
    }


def size_bytes(exchange: Exchange) -> int:
    """Return the approximate memory of an exchange while it waits to be written."""
    outcome = exchange.outcome
    tensors: Sequence[Tensor] = exchange.request.inputs if outcome is None else getattr(outcome, "outputs", ())
    return 1024 + sum([_held_bytes(item) for item in tensors])


def tensor(item: Tensor) -> dict[str, Any]:
    """Return a tensor in V2's JSON form, its data flat in row-major order."""
    array = item.array
    written: dict[str, Any] = {"name": item.name, "datatype": item.datatype.name, "shape": list(array.shape)}
    data = _text(array) if item.datatype is BYTES else _numbers(array, item.datatype.name)
    if data is None:
        content = _bytes_content(array) if item.datatype is BYTES else np.ascontiguousarray(array).tobytes()
        return written | {"parameters": {"encoding": "base64"}, "data": [Binary(content)]}
    return written | {"data": data}


def _request_data(request: InferRequest) -> dict[str, Any]:
    data: dict[str, Any] = {"id": request.id, **_parameters(request.parameters)}
    data["inputs"] = [tensor(item) for item in request.inputs]
    if request.outputs:
        data["outputs"] = [_wanted(name, request.classes) for name in request.outputs]
    return data


def _wanted(name: str, classes: Mapping[str, int]) -> dict[str, Any]:
    return {"name": name} | ({"parameters": {"classification": classes[name]}} if name in classes else {})


def _parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"parameters": dict(parameters)} if parameters else {}


def _numbers(array: Array, datatype: str) -> Array | None:
    if datatype in _WITHOUT_JSON or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        return None
    return np.ascontiguousarray(array).reshape(-1)


def _text(array: Array) -> list[str] | None:
    try:
        return [bytes(element).decode() for element in array.flat]
    except UnicodeDecodeError:
        return None


def _bytes_content(array: Array) -> bytes:
    """Return V2's binary form of BYTES: each element after its length, four bytes little-endian."""
    return b"".join([struct.pack("<I", len(element)) + bytes(element) for element in array.flat])


def _held_bytes(item: Tensor) -> int:
    held: int = item.array.nbytes
    return held + sum([len(element) for element in item.array.flat]) if item.datatype is BYTES else held
