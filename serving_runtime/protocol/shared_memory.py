"""The parameters by which a tensor of a request is said to lie in shared memory; the same over HTTP and gRPC."""

from collections.abc import Mapping
from typing import Any

from serving_runtime.engine.shared_memory import Slice
from serving_runtime.errors import InvalidArgument

_NAMES = ("shared_memory_region", "shared_memory_byte_size", "shared_memory_offset")


def slice_of(parameters: Mapping[str, Any], owner: str) -> Slice | None:
    """Return the slice that a tensor's parameters name, None for none; raises InvalidArgument for half of one."""
    region, byte_size, offset = (parameters.get(name) for name in _NAMES)
    if region is None and byte_size is None and offset is None:
        return None
    if region is None or byte_size is None:
        missing = _NAMES[0] if region is None else _NAMES[1]
        raise InvalidArgument(f"{owner}: '{missing}' is missing; shared memory needs both its region and its byte size")
    if type(region) is not str:
        raise InvalidArgument(f"{owner}: '{_NAMES[0]}' must be a string")
    offset = 0 if offset is None else offset
    for name, value in ((_NAMES[1], byte_size), (_NAMES[2], offset)):
        if type(value) is not int or value < 0:
            raise InvalidArgument(f"{owner}: '{name}' must be an integer >= 0")
    return Slice(region, offset, byte_size)


def parameters_of(part: Slice, written_bytes: int) -> dict[str, Any]:
    """Return the parameters that tell a client where its output lies."""
    parameters: dict[str, Any] = {_NAMES[0]: part.region, _NAMES[1]: written_bytes}
    if part.offset:
        parameters[_NAMES[2]] = part.offset
    return parameters
