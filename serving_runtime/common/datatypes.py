"""V2 tensor datatypes, in numpy, in config.pbtxt and on the wire.

V2: tensor data is row-major little-endian; BYTES elements carry a four-byte little-endian length; BOOL is one byte.
numpy has no BF16: its values travel as the uint16 they are stored in; `from_bf16` and `to_bf16` convert them.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Datatype:
    """One V2 datatype.

    Attributes:
        name: as V2 spells it, "FP32".
        config_name: as config.pbtxt spells it, "TYPE_FP32".
        dtype: of the arrays that hold it; object for BYTES (elements are bytes).
        size_bytes: of one element on the wire; 0 for BYTES, whose elements differ.
    """

    name: str
    config_name: str
    dtype: np.dtype[Any]
    size_bytes: int

    @property
    def holds_floats(self) -> bool:
        """Return whether its values are floating-point numbers, which the dtype of BF16 does not show."""
        return self.dtype.kind == "f" or self.name == "BF16"


def _numeric(name: str, code: str) -> Datatype:
    dtype = np.dtype(code)
    return Datatype(name, f"TYPE_{name}", dtype, dtype.itemsize)


BYTES = Datatype("BYTES", "TYPE_STRING", np.dtype(object), 0)
BF16 = _numeric("BF16", "<u2")

DATATYPES: dict[str, Datatype] = {
    datatype.name: datatype
    for datatype in (
        _numeric("BOOL", "?"),
        _numeric("UINT8", "u1"),
        _numeric("UINT16", "<u2"),
        _numeric("UINT32", "<u4"),
        _numeric("UINT64", "<u8"),
        _numeric("INT8", "i1"),
        _numeric("INT16", "<i2"),
        _numeric("INT32", "<i4"),
        _numeric("INT64", "<i8"),
        _numeric("FP16", "<f2"),
        BF16,
        _numeric("FP32", "<f4"),
        _numeric("FP64", "<f8"),
        BYTES,
    )
}

FROM_CONFIG_NAME: dict[str, Datatype] = {datatype.config_name: datatype for datatype in DATATYPES.values()}

MAX_DIMS = 32
"""More dimensions than this are refused; numpy holds 64."""

ABSENT: Array = np.empty((0,) * (MAX_DIMS + 1))
"""Placeholder for an optional input that a request omits; no request can have its shape."""

MAX_ELEMENTS = 2**40
"""A shape with a larger product is refused before anything is allocated."""


def element_count(shape: tuple[int, ...]) -> int:
    """Return the product of a shape's dimensions; Python integers, so it cannot overflow."""
    count = 1
    for dim in shape:
        count *= dim
    return count


def from_bf16(array: Array) -> Array:
    """Return BF16 values, which are the upper half of an FP32's bits, as FP32; exactly."""
    return (array.astype("<u4") << 16).view("<f4")


def to_bf16(numbers: Array) -> Array:
    """Return numbers as the bits of BF16, rounded by way of FP32 to the nearest, ties to even; NaN stays NaN."""
    with np.errstate(over="ignore"):
        floats: Array = np.asarray(numbers, "<f4")
        bits = floats.view("<u4")
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    return np.where(np.isnan(floats), np.uint16(0x7FC0), rounded)
