"""JSON tensor data: `data` nested or flat in row-major order (V2: inference request JSON object).

Python's own number types decide what fits: JSON 1 is an integer, 1.0 is not, true is neither. Numbers of FP16 and BF16
are rounded to the nearest value on input, as those of FP32 are, and exact on output.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from serving_runtime.common.datatypes import BF16, BYTES, Array, Datatype, element_count, from_bf16, to_bf16
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.protocol.tensors.binary import STEP, bytes_array

_ALLOWED: dict[str, frozenset[type]] = {"b": frozenset({bool}), "f": frozenset({int, float}), "O": frozenset({str})}
_INTEGERS = frozenset({int})
_BF16_EXPONENT = np.uint16(0x7F80)
_KINDS = {"b": "true or false", "f": "numbers", "O": "strings"}


def decode(data: Any, datatype: Datatype, shape: tuple[int, ...], tensor: str) -> Array:
    """Return the tensor in a request's `data`; raises InvalidArgument where it does not fit datatype and shape.

    Args:
        data: the JSON value, which is emptied where it is large; or its numbers as a flat array, FP64 for a
            floating-point datatype, else 64-bit integers.
    """
    if isinstance(data, np.ndarray):
        _check_counted(len(data), shape, tensor)
        return _fitted(data, datatype, tensor).reshape(shape)
    if not isinstance(data, list):
        raise InvalidArgument(f"input '{tensor}': data must be an array")
    elements = flat(data, shape, tensor)
    _check_counted(len(elements), shape, tensor)
    if len(elements) <= STEP:
        return _array(elements, datatype, tensor).reshape(shape)
    array: Array = np.empty(len(elements), datatype.dtype)
    for at in reversed(range(0, len(elements), STEP)):  # from the end, so that converted elements are freed at once
        part = elements[at:]
        del elements[at:]
        array[at : at + len(part)] = _array(part, datatype, tensor)
    return array.reshape(shape)


def _array(elements: list[Any], datatype: Datatype, tensor: str) -> Array:
    kind = "f" if datatype.holds_floats else datatype.dtype.kind
    if not set(map(type, elements)) <= _ALLOWED.get(kind, _INTEGERS):
        raise InvalidArgument(f"input '{tensor}': {datatype.name} data must be {_KINDS.get(kind, 'integers')}")
    if datatype is BYTES:
        return bytes_array([element.encode("utf-8") for element in elements])
    try:
        with np.errstate(over="ignore"):  # reported below, as a refusal
            array: Array = np.array(elements, dtype=np.float64 if datatype is BF16 else datatype.dtype)
    except OverflowError as error:
        raise _unfit(datatype, tensor) from error
    if datatype is BF16:
        return _fitted_bf16(array, tensor)
    if kind == "f" and not np.isfinite(array).all():  # JSON has no infinity: it was a larger number
        raise _unfit(datatype, tensor)
    return array


def _check_counted(found: int, shape: tuple[int, ...], tensor: str) -> None:
    count = element_count(shape)
    if found != count:
        raise InvalidArgument(f"input '{tensor}' got {found} elements, expecting {count} for shape {list(shape)}")


def _fitted(numbers: Array, datatype: Datatype, tensor: str) -> Array:
    """Return 64-bit numbers in a datatype of at most 64 bits; raises InvalidArgument where one does not fit."""
    if datatype is BF16:
        return _fitted_bf16(numbers, tensor)
    dtype = datatype.dtype
    if dtype != numbers.dtype and numbers.size and dtype.kind != "f":
        limits = np.iinfo(dtype)
        if numbers.min() < limits.min or numbers.max() > limits.max:
            raise _unfit(datatype, tensor)
    try:
        with np.errstate(over="raise"):  # the processor flags it during the conversion: no second pass over the numbers
            return numbers.astype(dtype, copy=False)
    except FloatingPointError as error:
        raise _unfit(datatype, tensor) from error


def _fitted_bf16(numbers: Array, tensor: str) -> Array:
    array = to_bf16(numbers)
    if ((array & _BF16_EXPONENT) == _BF16_EXPONENT).any():  # infinity: it was a larger number
        raise _unfit(BF16, tensor)
    return array


def _unfit(datatype: Datatype, tensor: str) -> InvalidArgument:
    return InvalidArgument(f"input '{tensor}' has a number that does not fit {datatype.name}")


def encode(array: Array, datatype: Datatype, tensor: str) -> Any:
    """Return an output's flat `data` for orjson; raises where JSON cannot carry the values."""
    if datatype is BYTES:
        try:
            return [element.decode("utf-8") for element in array.ravel()]
        except UnicodeDecodeError as error:
            raise InvalidArgument(
                f"output '{tensor}' is not UTF-8, which JSON must be; request it with binary_data true"
            ) from error
    if datatype is BF16:
        array = from_bf16(array)
    elif datatype.name == "FP16":
        array = array.astype("<f4")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InvalidArgument(
            f"output '{tensor}' holds NaN or infinity, which JSON cannot carry; request it with binary_data true"
        )
    return np.ascontiguousarray(array).reshape(-1)


def flat(data: list[Any], shape: Sequence[int], tensor: str) -> list[Any]:
    """Return the elements of flat or nested data; the nesting must match the shape. Many elements are moved."""
    if not data or not isinstance(data[0], list):
        return data
    if shape and len(data) == shape[0]:
        for depth, dim in enumerate(shape[1:], start=1):
            if not all(isinstance(part, list) and len(part) == dim for part in data):
                raise InvalidArgument(
                    f"input '{tensor}': data is not nested as its shape {list(shape)} says, at depth {depth}"
                )
            data = list(chain.from_iterable(data)) if element_count(tuple(shape)) <= STEP else _joined(data)
        return data
    raise InvalidArgument(f"input '{tensor}': data has length {len(data)}, not as its shape {list(shape)} says")


def _joined(data: list[Any]) -> list[Any]:
    """Return the elements of lists, which are emptied."""
    found: list[Any] = []
    for part in data:
        for at in range(0, len(part), STEP):
            found += part[at : at + STEP]
        part.clear()
    return found
