"""Shared memory parameters of a request's tensors; the same over HTTP and gRPC."""

from collections.abc import Mapping
from typing import Any

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.engine.memory.shared_memory import Slice

_REGION, BYTE_SIZE, _OFFSET = "shared_memory_region", "shared_memory_byte_size", "shared_memory_offset"


def slice_of(parameters: Mapping[str, Any], kind: str, tensor: str) -> Slice | None:
    """Return the slice in a tensor's parameters, None without one; raises InvalidArgument for half of one.

    Args:
        kind: "input" or "output", for the message.
    """
    if _REGION not in parameters and BYTE_SIZE not in parameters and _OFFSET not in parameters:
        return None
    region, byte_size, offset = parameters.get(_REGION), parameters.get(BYTE_SIZE), parameters.get(_OFFSET)
    owner = f"{kind} '{tensor}'"
    if region is None or byte_size is None:
        missing = _REGION if region is None else BYTE_SIZE
        raise InvalidArgument(f"{owner}: '{missing}' is missing; shared memory needs both its region and its byte size")
    if type(region) is not str:
        raise InvalidArgument(f"{owner}: '{_REGION}' must be a string")
    offset = 0 if offset is None else offset
    for name, value in ((BYTE_SIZE, byte_size), (_OFFSET, offset)):
        if type(value) is not int or value < 0:
            raise InvalidArgument(f"{owner}: '{name}' must be an integer >= 0")
    return Slice(region, offset, byte_size)


def parameters_of(part: Slice, written_bytes: int) -> dict[str, Any]:
    """Return the parameters of an output in shared memory."""
    parameters: dict[str, Any] = {_REGION: part.region, BYTE_SIZE: written_bytes}
    if part.offset:
        parameters[_OFFSET] = part.offset
    return parameters
