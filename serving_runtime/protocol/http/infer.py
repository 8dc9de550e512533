"""V2 inference over HTTP: the JSON body, and the binary tensor data extension in both directions.

Layout of a binary body: JSON of Inference-Header-Content-Length bytes, then the tensors in the order of the JSON.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from serving_runtime.datatypes import Array, Datatype
from serving_runtime.errors import InvalidArgument, Unsupported
from serving_runtime.protocol import json_tensors, tensors
from serving_runtime.protocol.http.message import JSON, Response
from serving_runtime.protocol.tensors import Buffer
from serving_runtime.request import NO_PARAMETERS, InferRequest, InferResponse, Tensor

_MANY_BYTES = 1024 * 1024
_MAX_CONTAINERS = 1_000_000
"""Arrays and objects in one body: an empty array is two bytes in JSON, but over fifty as an object in memory."""


class OutputForm(NamedTuple):
    """Which outputs the client wants in binary: `binary` unless `by_name` says otherwise."""

    binary: bool
    by_name: Mapping[str, bool]


_NO_NAMES: Mapping[str, bool] = {}
_ALL_JSON = OutputForm(binary=False, by_name=_NO_NAMES)
_ALL_BINARY = OutputForm(binary=True, by_name=_NO_NAMES)


def decode(
    body: Buffer, offset: int, json_length: int | None, model: str, version: str
) -> tuple[InferRequest, OutputForm]:
    """Return the request in an HTTP body that begins at `offset` of its buffer; raises InvalidArgument."""
    end = len(body)
    binary_start = end if json_length is None else offset + json_length
    if binary_start > end:
        raise InvalidArgument(
            f"Inference-Header-Content-Length is {json_length}, but the request body has {end - offset} bytes"
        )
    view = memoryview(body)
    content = _loads(view[offset:binary_start])
    inputs = content.get("inputs")
    if type(inputs) is not list or not inputs:
        raise InvalidArgument("the request must have an array 'inputs' that is not empty")
    decoded = []
    position = binary_start
    for item in inputs:
        name, datatype, shape, size = _described(item)
        array: Array
        if size is None:
            if "data" not in item:
                raise InvalidArgument(f"input '{name}' has neither data nor the parameter binary_data_size")
            array = json_tensors.decode(item["data"], datatype, shape, name)
        else:
            if "data" in item:
                raise InvalidArgument(f"input '{name}' has both data and the parameter binary_data_size")
            if size > end - position:
                raise InvalidArgument(
                    f"input '{name}' has binary_data_size {size}, but only {end - position} bytes are left in the body"
                )
            array = tensors.decode(view[position : position + size], datatype, shape, name)
            position += size
        decoded.append(Tensor(name, datatype, array))
    if position != end:
        raise InvalidArgument(f"the request body has {end - position} bytes after its last tensor")
    parameters = content.get("parameters", NO_PARAMETERS)
    if parameters is not NO_PARAMETERS and type(parameters) is not dict:
        raise InvalidArgument("the request's 'parameters' must be an object")
    request_id = content.get("id", "")
    if type(request_id) is not str:
        raise InvalidArgument("the request's 'id' must be a string")
    names, form = _requested(content, parameters)
    return InferRequest(model, version, tuple(decoded), names, request_id, parameters), form


def encode(response: InferResponse, form: OutputForm) -> Response:
    """Return the HTTP answer, its outputs in JSON or in binary as the client asked for each."""
    outputs: list[dict[str, Any]] = []
    binary: list[Any] = []
    total = 0
    for name, datatype, array in response.outputs:
        output: dict[str, Any] = {"name": name, "datatype": datatype.name, "shape": array.shape}
        if form.by_name.get(name, form.binary) if form.by_name else form.binary:
            raw = tensors.encode(array, datatype)
            size = raw.nbytes if raw is array else memoryview(raw).nbytes
            output["parameters"] = {"binary_data_size": size}
            binary.append(raw)
            total += size
        else:
            output["data"] = json_tensors.encode(array, datatype, name)
        outputs.append(output)
    head: dict[str, Any] = {"model_name": response.model_name, "model_version": response.model_version}
    if response.id:
        head["id"] = response.id
    head["outputs"] = outputs
    text = orjson.dumps(head, option=orjson.OPT_SERIALIZE_NUMPY)
    if not binary:
        return Response(200, JSON, (text,), len(text))
    headers = b"Content-Type: application/octet-stream\r\nInference-Header-Content-Length: %d\r\n" % len(text)
    return Response(200, headers, (text, *binary), len(text) + total)


def _loads(text: memoryview) -> dict[str, Any]:
    if not len(text):
        raise InvalidArgument("the request body must begin with a JSON object; requests of raw bytes are not supported")
    if len(text) > _MANY_BYTES:
        raw = bytes(text)
        if raw.count(b"[") + raw.count(b"{") > _MAX_CONTAINERS:
            raise InvalidArgument(
                f"the request's JSON has more than {_MAX_CONTAINERS} arrays and objects; send it flat"
            )
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidArgument(f"the request is not valid JSON: {error}") from error
    if type(content) is not dict:
        raise InvalidArgument("the request must be a JSON object")
    return content


def _described(item: Any) -> tuple[str, Datatype, tuple[int, ...], int | None]:
    """Return name, datatype, shape and binary size (None for JSON data) of one entry of 'inputs'."""
    if type(item) is not dict:
        raise InvalidArgument("each of 'inputs' must be an object")
    name = item.get("name")
    if type(name) is not str:
        raise InvalidArgument("each of 'inputs' must have a string 'name'")
    datatype = tensors.datatype_named(item.get("datatype"), name)
    dims = item.get("shape")
    if type(dims) is not list:
        raise InvalidArgument(f"input '{name}' must have an array 'shape'")
    shape = tensors.checked_shape(dims, name)
    parameters = item.get("parameters")
    if parameters is None:
        return name, datatype, shape, None
    if type(parameters) is not dict:
        raise InvalidArgument(f"input '{name}': 'parameters' must be an object")
    if "shared_memory_region" in parameters:
        raise Unsupported(f"input '{name}': shared memory is not supported")
    size = parameters.get("binary_data_size")
    if size is not None and (type(size) is not int or size < 0):
        raise InvalidArgument(f"input '{name}': binary_data_size must be an integer >= 0")
    return name, datatype, shape, size


def _requested(content: dict[str, Any], parameters: Mapping[str, Any]) -> tuple[tuple[str, ...], OutputForm]:
    """Return the names of the outputs asked for, in order, and the form of each."""
    default = _flag(parameters, "binary_data_output", "the request", default=False) if parameters else False
    outputs = content.get("outputs")
    if not outputs:
        if outputs is not None and type(outputs) is not list:
            raise InvalidArgument("'outputs' must be an array")
        return (), _ALL_BINARY if default else _ALL_JSON
    if type(outputs) is not list:
        raise InvalidArgument("'outputs' must be an array")
    names = []
    by_name = {}
    for item in outputs:
        name = item.get("name") if type(item) is dict else None
        if type(name) is not str:
            raise InvalidArgument("each of 'outputs' must be an object with a string 'name'")
        own = item.get("parameters")
        if own is not None:
            if type(own) is not dict:
                raise InvalidArgument(f"output '{name}': 'parameters' must be an object")
            if own.get("classification"):
                raise Unsupported(f"output '{name}': the classification extension is not supported")
            if "shared_memory_region" in own:
                raise Unsupported(f"output '{name}': shared memory is not supported")
            by_name[name] = _flag(own, "binary_data", f"output '{name}'", default=default)
        names.append(name)
    return tuple(names), OutputForm(default, by_name)


def _flag(parameters: Mapping[str, Any], key: str, owner: str, *, default: bool) -> bool:
    value = parameters.get(key, default)
    if type(value) is not bool:
        raise InvalidArgument(f"{owner}: parameter '{key}' must be true or false")
    return value
