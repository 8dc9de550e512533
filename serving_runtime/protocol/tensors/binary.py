"""Binary tensor data: V2's binary extension over HTTP and raw contents over gRPC are the same bytes.

A client's declarations are checked against its bytes before an array is made of them.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from serving_runtime.common.datatypes import BYTES, DATATYPES, MAX_DIMS, MAX_ELEMENTS, Array, Datatype, element_count
from serving_runtime.common.errors import InvalidArgument

Buffer: TypeAlias = bytes | bytearray | memoryview

MAX_TENSORS = 4096
"""Limit of one request's inputs, and of the outputs that it may name."""

STEP = 64 * 1024
"""Elements that are converted in one go: other threads have their turns in between."""

_SLOW_BYTES = 256 * 1024
"""Size of BYTES elements, and of copies, below which a conversion takes less than a millisecond."""

_LENGTH = struct.Struct("<I")


def datatype_named(name: Any, tensor: str) -> Datatype:
    """Return a V2 datatype; raises InvalidArgument for an unknown one."""
    datatype = DATATYPES.get(name) if isinstance(name, str) else None
    if datatype is None:
        raise InvalidArgument(f"input '{tensor}' has datatype {name!r}; V2 knows {', '.join(DATATYPES)}")
    return datatype


def check_count(found: int, what: str) -> None:
    """Raise InvalidArgument for a request that names too many tensors.

    Args:
        what: "inputs" or "outputs".
    """
    if found > MAX_TENSORS:
        raise InvalidArgument(f"the request has {found} {what}; at most {MAX_TENSORS} are read")


def checked_shape(shape: Sequence[Any], tensor: str) -> tuple[int, ...]:
    """Return a client's shape as a tuple; raises InvalidArgument for an impossible one."""
    if len(shape) > MAX_DIMS:
        raise InvalidArgument(f"input '{tensor}' has {len(shape)} dimensions; at most {MAX_DIMS} are supported")
    count = 1
    for dim in shape:
        if type(dim) is not int or dim < 0:
            raise InvalidArgument(f"input '{tensor}' has shape {_shown(shape)}; dimensions must be integers >= 0")
        count *= dim if dim else 1
        if count > MAX_ELEMENTS:
            raise InvalidArgument(f"input '{tensor}' has shape {_shown(shape)}, which is too large")
    return tuple(shape)


def decode(view: memoryview, datatype: Datatype, shape: tuple[int, ...], tensor: str) -> Array:
    """Return a tensor that shares the view's memory, but for BYTES and BOOL.

    Raises InvalidArgument unless the bytes are exactly those of the datatype and shape.
    """
    count = element_count(shape)
    if datatype is BYTES:
        return _decode_bytes(view, count, tensor).reshape(shape)
    expected = count * datatype.size_bytes
    if len(view) != expected:
        form = f"{datatype.name} {list(shape)}"
        raise InvalidArgument(f"input '{tensor}' got unexpected byte size {len(view)}, expecting {expected} for {form}")
    if not count:
        return np.empty(shape, datatype.dtype)
    if datatype.name == "BOOL":  # any byte may come; a bool array must hold 0 and 1 only
        truth: Array = np.frombuffer(view, np.uint8) != 0
        return truth.reshape(shape)
    return np.frombuffer(view, datatype.dtype).reshape(shape)


def decoder(datatype: Datatype, shape: tuple[int, ...], tensor: str) -> Callable[[memoryview], Array]:
    """Return `decode` for one tensor."""
    return lambda view: decode(view, datatype, shape, tensor)


def is_view(size_bytes: int, datatype: Datatype, shape: tuple[int, ...]) -> bool:
    """Return whether a tensor has the right size, and is an array without conversion of its bytes."""
    if datatype.name in ("BYTES", "BOOL"):
        return False
    return size_bytes > 0 and size_bytes == element_count(shape) * datatype.size_bytes


def encode(array: Array, datatype: Datatype) -> Any:
    """Return the wire form of a tensor as an object with the buffer interface."""
    if datatype is BYTES:
        return encode_bytes(array.ravel())
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def takes_long(array: Array, datatype: Datatype) -> bool:
    """Return whether a tensor takes long to write element by element: as text, or as BYTES in any form."""
    return array.size > STEP or (datatype is BYTES and sum(map(len, array.flat)) > _SLOW_BYTES)


def copy_takes_long(size_bytes: int) -> bool:
    return size_bytes > _SLOW_BYTES


def encode_bytes(elements: Iterable[bytes]) -> bytes:
    """Return BYTES elements, each after its four-byte little-endian length."""
    pack = _LENGTH.pack
    parts = []
    for element in elements:
        parts.append(pack(len(element)))
        parts.append(element)
    return b"".join(parts)


def bytes_array(elements: Sequence[bytes]) -> Array:
    """Return a one-dimensional BYTES array."""
    array = np.empty(len(elements), dtype=object)
    for at in range(0, len(elements), STEP):
        array[at : at + STEP] = elements[at : at + STEP]
    return array


def _decode_bytes(view: memoryview, count: int, tensor: str) -> Array:
    size = len(view)
    if count * _LENGTH.size > size:  # before anything of that length is allocated
        raise InvalidArgument(
            f"input '{tensor}' has {count} BYTES elements in its shape, but only {size} bytes of data"
        )
    elements = []
    position = 0
    for _ in range(count):
        if position + _LENGTH.size > size:
            raise InvalidArgument(f"input '{tensor}' holds fewer BYTES elements than the {count} in its shape")
        (length,) = _LENGTH.unpack_from(view, position)
        position += _LENGTH.size
        if length > size - position:
            raise InvalidArgument(
                f"input '{tensor}' has a BYTES element of length {length} where {size - position} bytes are left"
            )
        elements.append(bytes(view[position : position + length]))
        position += length
    if position != size:
        raise InvalidArgument(f"input '{tensor}' has {size - position} bytes after its last of {count} BYTES elements")
    return bytes_array(elements)


def _shown(shape: Sequence[Any]) -> str:
    text = str(list(shape))
    return text if len(text) <= 100 else f"{text[:100]}…"
