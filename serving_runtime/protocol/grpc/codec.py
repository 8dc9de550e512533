"""ModelInferRequest and ModelInferResponse to and from what the engine takes.

Tensors come raw (views of the message's bytes) or typed in `contents`; the two exclude each other within a request.
Answers are always raw, as Triton's are.
"""

from typing import Any

import numpy as np

from serving_runtime import proto
from serving_runtime.datatypes import BYTES, Array, Datatype, element_count
from serving_runtime.errors import InvalidArgument, Unsupported
from serving_runtime.protocol import tensors
from serving_runtime.request import NO_PARAMETERS, InferRequest, InferResponse, Tensor

_CONTENTS = {
    "BOOL": "bool_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


def decode(message: Any) -> InferRequest:
    """Return the request in a ModelInferRequest; raises InvalidArgument."""
    raw = message.raw_input_contents
    inputs = message.inputs
    if raw and len(raw) != len(inputs):
        raise InvalidArgument(f"the request has {len(inputs)} inputs, but {len(raw)} raw_input_contents")
    decoded = []
    for index, item in enumerate(inputs):
        name = item.name
        datatype = tensors.datatype_named(item.datatype, name)
        shape = tensors.checked_shape(item.shape, name)
        if item.parameters:
            _refuse_unsupported(item.parameters, f"input '{name}'")
        array: Array
        if raw:
            if item.HasField("contents"):
                raise InvalidArgument(f"input '{name}' has contents, but the request has raw_input_contents")
            array = tensors.decode(memoryview(raw[index]), datatype, shape, name)
        else:
            array = _decode_contents(item.contents, datatype, shape, name)
        decoded.append(Tensor(name, datatype, array))
    for output in message.outputs:
        if output.parameters:
            _refuse_unsupported(output.parameters, f"output '{output.name}'")
    parameters = {key: _parameter(message.parameters[key]) for key in message.parameters}
    return InferRequest(
        message.model_name,
        message.model_version,
        tuple(decoded),
        tuple([output.name for output in message.outputs]),
        message.id,
        parameters or NO_PARAMETERS,
    )


def encode(response: InferResponse) -> Any:
    """Return the ModelInferResponse, its tensors raw."""
    message = proto.ModelInferResponse(
        model_name=response.model_name, model_version=response.model_version, id=response.id
    )
    for name, datatype, array in response.outputs:
        message.outputs.add(name=name, datatype=datatype.name, shape=array.shape)
        raw = tensors.encode(array, datatype)
        message.raw_output_contents.append(raw if isinstance(raw, bytes) else raw.tobytes())
    return message


def _decode_contents(contents: Any, datatype: Datatype, shape: tuple[int, ...], tensor: str) -> Array:
    field = _CONTENTS.get(datatype.name)
    if field is None:
        raise Unsupported(f"input '{tensor}': {datatype.name} has no typed contents; send raw_input_contents")
    for descriptor, _ in contents.ListFields():
        if descriptor.name != field:
            raise InvalidArgument(f"input '{tensor}' is {datatype.name}, but its contents are {descriptor.name}")
    values = getattr(contents, field)
    count = element_count(shape)
    if len(values) != count:
        raise InvalidArgument(
            f"input '{tensor}' got {len(values)} elements in {field}, expecting {count} for shape {list(shape)}"
        )
    if datatype is BYTES:
        return tensors.bytes_array(list(values)).reshape(shape)
    try:
        return np.array(list(values), dtype=datatype.dtype).reshape(shape)
    except OverflowError as error:
        raise InvalidArgument(f"input '{tensor}' has a number that does not fit {datatype.name}") from error


def _parameter(message: Any) -> Any:
    choice = message.WhichOneof("parameter_choice")
    return getattr(message, choice) if choice is not None else None


def _refuse_unsupported(parameters: Any, owner: str) -> None:
    if "shared_memory_region" in parameters:
        raise Unsupported(f"{owner}: shared memory is not supported")
    if "classification" in parameters and _parameter(parameters["classification"]):
        raise Unsupported(f"{owner}: the classification extension is not supported")
