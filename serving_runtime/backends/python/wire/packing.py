"""Tensor serialization: numbers in their memory layout, strings length-prefixed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from serving_runtime.common.datatypes import BYTES, DATATYPES, Array, Datatype, element_count
from serving_runtime.common.request import Tensor


class Packed(NamedTuple):
    """One tensor's content, ready to be written."""

    described: list[Any]
    content: Array
    """Bytes, one-dimensional."""


def packed(tensor: Tensor) -> Packed:
    """Return the content of a tensor, without a copy where it is already contiguous."""
    name, datatype, array = tensor
    content = _texts(array) if datatype is BYTES else np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return Packed([name, datatype.name, list(array.shape), content.size], content)


def unpacked(described: Sequence[Any], content: Array) -> Tensor:
    """Return the packed tensor; numbers are a view of `content`."""
    name, datatype_name, shape, _ = described
    datatype = DATATYPES[datatype_name]
    if datatype is BYTES:
        return Tensor(name, datatype, _elements(content, tuple(shape)))
    return Tensor(name, datatype, content.view(datatype.dtype).reshape(shape))


def datatype_of(array: Array) -> Datatype | None:
    """Return the datatype of an array; strings of any kind are BYTES. None for other types."""
    if array.dtype.kind in "OSU":
        return BYTES
    return _BY_DTYPE.get(array.dtype)


_BY_DTYPE = {
    datatype.dtype: datatype for datatype in DATATYPES.values() if datatype is not BYTES and datatype.name != "BF16"
}


def _texts(array: Array) -> Array:
    elements = [_encoded(element) for element in array.reshape(-1).tolist()]
    lengths = np.fromiter(map(len, elements), np.uint32, len(elements))
    return np.frombuffer(lengths.tobytes() + b"".join(elements), np.uint8)


def _encoded(element: Any) -> bytes:
    if isinstance(element, bytes):
        return element
    return (element if isinstance(element, str) else str(element)).encode()


def _elements(content: Array, shape: tuple[int, ...]) -> Array:
    count = element_count(shape)
    ends = np.cumsum(content[: count * 4].view(np.uint32), dtype=np.int64)
    text = content[count * 4 :].tobytes()
    elements = np.empty(count, dtype=object)
    start = 0
    for number, end in enumerate(ends.tolist()):
        elements[number] = text[start:end]
        start = end
    return elements.reshape(shape)
