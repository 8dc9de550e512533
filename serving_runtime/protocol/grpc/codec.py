"""ModelInferRequest and ModelInferResponse to and from what the engine takes.

Tensors come raw (views of the message's bytes) or typed in `contents`; the two exclude each other within a request.
Answers are always raw, as Triton's are.
"""

from typing import Any

import numpy as np

from serving_runtime import proto
from serving_runtime.datatypes import BYTES, Array, Datatype, element_count
from serving_runtime.errors import InvalidArgument, ServingError, Unsupported
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

_FINAL = "triton_final_response"

_ModelStreamInferResponse = proto.message("inference.ModelStreamInferResponse")


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
    message = proto.ModelInferResponse()
    _fill(message, response)
    return message


def encode_stream(response: InferResponse) -> bytes:
    """Return the ModelStreamInferResponse, serialized; every answer on a stream says whether it is the last."""
    message = _ModelStreamInferResponse()
    _fill(message.infer_response, response)
    message.infer_response.parameters[_FINAL].bool_param = response.final
    return message.SerializeToString()  # type: ignore[no-any-return]


def encode_stream_error(error: ServingError, request: Any) -> bytes:
    """Return the ModelStreamInferResponse that tells what became of a ModelInferRequest, serialized."""
    message = _ModelStreamInferResponse(error_message=error.message)
    answer = message.infer_response
    answer.id, answer.model_name, answer.model_version = request.id, request.model_name, request.model_version
    answer.parameters[_FINAL].bool_param = True
    return message.SerializeToString()  # type: ignore[no-any-return]


def _fill(message: Any, response: InferResponse) -> None:
    message.model_name, message.model_version = response.model_name, response.model_version
    message.id = response.id
    for key, value in response.parameters.items():
        setattr(message.parameters[key], _parameter_field(value), value)
    for name, datatype, array in response.outputs:
        message.outputs.add(name=name, datatype=datatype.name, shape=array.shape)
        raw = tensors.encode(array, datatype)
        message.raw_output_contents.append(raw if isinstance(raw, bytes) else raw.tobytes())


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


def _parameter_field(value: Any) -> str:
    """Return the field of InferParameter for a value."""
    if isinstance(value, bool):
        return "bool_param"
    if isinstance(value, int):
        return "int64_param" if value < 2**63 else "uint64_param"
    return "double_param" if isinstance(value, float) else "string_param"


def _parameter(message: Any) -> Any:
    choice = message.WhichOneof("parameter_choice")
    return getattr(message, choice) if choice is not None else None


def _refuse_unsupported(parameters: Any, owner: str) -> None:
    if "shared_memory_region" in parameters:
        raise Unsupported(f"{owner}: shared memory is not supported")
    if "classification" in parameters and _parameter(parameters["classification"]):
        raise Unsupported(f"{owner}: the classification extension is not supported")
