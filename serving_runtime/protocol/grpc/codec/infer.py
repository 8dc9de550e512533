"""gRPC inference codec: ModelInferRequest and ModelInferResponse to and from the engine's types.

Tensors come raw (views of the message's bytes) or typed in `contents`; the two exclude each other within a request.
Answers are always raw, as Triton's are.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from serving_runtime import proto
from serving_runtime.common.datatypes import BYTES, Array, Datatype, element_count
from serving_runtime.common.errors import InvalidArgument, ServingError, Unsupported
from serving_runtime.common.request import NO_PARAMETERS, InferRequest, InferResponse, Tensor
from serving_runtime.engine.memory.shared_memory import SharedMemory, Slice
from serving_runtime.protocol.tensors import binary, parameters
from serving_runtime.protocol.tensors.decoding import SLOW_BYTES
from serving_runtime.protocol.tensors.shared_memory import BYTE_SIZE, parameters_of, slice_of

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

Parts: TypeAlias = Mapping[str, Slice]
"""Output slices in shared memory, by the outputs' names."""

NO_PARTS: Parts = {}

_FINAL = "triton_final_response"

_ModelStreamInferResponse = proto.message("inference.ModelStreamInferResponse")


def is_slow(message: Any) -> bool:
    """Return whether a ModelInferRequest should be decoded off the event loop.

    It is large with single elements, or reads much from shared memory.
    """
    one_by_one = any(item.datatype == "BYTES" or item.HasField("contents") for item in message.inputs)
    return (one_by_one and message.ByteSize() > SLOW_BYTES) or reads_much(message)


def reads_much(message: Any) -> bool:
    """Return whether a ModelInferRequest reads much from shared memory."""
    sizes = [item.parameters[BYTE_SIZE].int64_param for item in message.inputs if BYTE_SIZE in item.parameters]
    return binary.copy_takes_long(sum(sizes))


def answer_is_slow(response: InferResponse, parts: Parts) -> bool:
    """Return whether to encode an answer off the event loop: with BYTES elements, or into shared memory."""
    return any(
        (datatype is BYTES and binary.takes_long(array, datatype))
        or (name in parts and binary.copy_takes_long(array.nbytes))
        for name, datatype, array in response.outputs
    )


def decode(message: Any, memory: SharedMemory) -> tuple[InferRequest, Parts]:
    """Return the request in a ModelInferRequest, and the shared memory slices for its outputs.

    Raises InvalidArgument, NotFound or Unsupported.
    """
    binary.check_count(len(message.inputs), "inputs")
    binary.check_count(len(message.outputs), "outputs")
    raw = message.raw_input_contents
    decoded = []
    index = shared_bytes = 0
    for item in message.inputs:
        name = item.name
        datatype = binary.datatype_named(item.datatype, name)
        shape = binary.checked_shape(item.shape, name)
        part = slice_of(_plain(item.parameters), "input", name) if item.parameters else None
        array: Array
        if (raw or part is not None) and item.HasField("contents"):
            other = "raw_input_contents" if part is None else "the input in shared memory"
            raise InvalidArgument(f"input '{name}' has contents, but the request has {other}")
        if part is not None:
            array = memory.tensor(part, binary.decoder(datatype, shape, name), before_bytes=shared_bytes)
            shared_bytes += part.byte_size
        elif raw:
            if index >= len(raw):
                raise _miscounted(message)
            array = binary.decode(memoryview(raw[index]), datatype, shape, name)
            index += 1
        else:
            array = _decode_contents(item.contents, datatype, shape, name)
        decoded.append(Tensor(name, datatype, array))
    if index != len(raw):
        raise _miscounted(message)
    classes, parts = _output_forms(message)
    for part in parts.values():  # before a useless run of the model
        memory.check(part)
    request = InferRequest(
        message.model_name,
        message.model_version,
        tuple(decoded),
        tuple([output.name for output in message.outputs]),
        message.id,
        parameters.checked(_plain(message.parameters)) if message.parameters else NO_PARAMETERS,
        classes,
    )
    return request, parts


def encode(response: InferResponse, memory: SharedMemory, parts: Parts) -> Any:
    """Return the ModelInferResponse, its tensors raw but for those written into their part of shared memory.

    Raises ServingError where an output does not fit into its part.
    """
    message = proto.ModelInferResponse()
    _fill(message, response, memory, parts)
    return message


def serialized(response: InferResponse, memory: SharedMemory, parts: Parts) -> bytes:
    """Encode like `encode`, and return the message serialized."""
    return encode(response, memory, parts).SerializeToString()  # type: ignore[no-any-return]


def encode_stream(response: InferResponse, memory: SharedMemory, parts: Parts) -> bytes:
    """Return the ModelStreamInferResponse, serialized; every answer on a stream has a flag for the last one.

    Raises ServingError like `encode`.
    """
    message = _ModelStreamInferResponse()
    _fill_for_stream(message.infer_response, response, memory, parts)
    return message.SerializeToString()  # type: ignore[no-any-return]


def encode_within_stream(response: InferResponse, memory: SharedMemory, parts: Parts) -> Any:
    """Return the ModelInferResponse inside a ModelStreamInferResponse; raises ServingError like `encode`."""
    message = proto.ModelInferResponse()
    _fill_for_stream(message, response, memory, parts)
    return message


def encode_stream_error(error: ServingError, request: Any, *, final: bool = True) -> bytes:
    """Return the ModelStreamInferResponse with the error of a request or its message, serialized."""
    message = _ModelStreamInferResponse(error_message=error.message)
    answer = message.infer_response
    answer.id, answer.model_name, answer.model_version = request.id, request.model_name, request.model_version
    answer.parameters[_FINAL].bool_param = final
    return message.SerializeToString()  # type: ignore[no-any-return]


def _fill_for_stream(message: Any, response: InferResponse, memory: SharedMemory, parts: Parts) -> None:
    _fill(message, response, memory, parts)
    message.parameters[_FINAL].bool_param = response.final


def _fill(message: Any, response: InferResponse, memory: SharedMemory, parts: Parts) -> None:
    message.model_name, message.model_version = response.model_name, response.model_version
    message.id = response.id
    for key, value in response.parameters.items():
        setattr(message.parameters[key], _parameter_field(value), value)
    for name, datatype, array in response.outputs:
        output = message.outputs.add(name=name, datatype=datatype.name, shape=array.shape)
        raw = binary.encode(array, datatype)
        if name in parts:
            for key, value in parameters_of(parts[name], memory.write(parts[name], raw)).items():
                setattr(output.parameters[key], _parameter_field(value), value)
            raw = b""  # clients expect one entry per output
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
    array: Array = np.empty(count, datatype.dtype)
    try:
        for at in range(0, count, binary.STEP):
            part = values[at : at + binary.STEP]
            array[at : at + binary.STEP] = (
                binary.bytes_array(part) if datatype is BYTES else np.array(part, datatype.dtype)
            )
        return array.reshape(shape)
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


def _output_forms(message: Any) -> tuple[Mapping[str, int], Parts]:
    """Return the number of classes, and the shared memory slices, of a ModelInferRequest's outputs, by name."""
    classes: dict[str, int] = {}
    parts: dict[str, Slice] = {}
    for output in message.outputs:
        if not output.parameters:
            continue
        owner, own = f"output '{output.name}'", _plain(output.parameters)
        count = own.get("classification", 0)
        if type(count) is not int or count < 0:
            raise InvalidArgument(f"{owner}: 'classification' must be an integer >= 0")
        part = slice_of(own, "output", output.name)
        if count and part is not None:
            raise InvalidArgument(f"{owner}: shared memory excludes classification")
        if count:
            classes[output.name] = count
        if part is not None:
            parts[output.name] = part
    return classes or NO_PARAMETERS, parts


def _plain(own: Any) -> dict[str, Any]:
    """Return a map of InferParameter messages as plain values."""
    return {key: _parameter(own[key]) for key in own}


def _miscounted(message: Any) -> InvalidArgument:
    found = len(message.raw_input_contents)
    return InvalidArgument(f"the request has {len(message.inputs)} inputs, but {found} raw_input_contents")
