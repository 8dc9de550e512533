"""The V2 datatypes, what each is in numpy, in config.pbtxt and on the wire.

V2: tensor data is row-major little-endian; BYTES elements carry a four-byte little-endian length; BOOL is one byte.
numpy has no BF16: its values travel as the uint16 they are stored in, and only a backend looks inside.
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
        json: whether V2 has a JSON form of it.
    """

    name: str
    config_name: str
    dtype: np.dtype[Any]
    size_bytes: int
    json: bool = True


def _numeric(name: str, code: str, *, json: bool = True) -> Datatype:
    dtype = np.dtype(code)
    return Datatype(name, f"TYPE_{name}", dtype, dtype.itemsize, json)


BYTES = Datatype("BYTES", "TYPE_STRING", np.dtype(object), 0)
BF16 = _numeric("BF16", "<u2", json=False)

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
        _numeric("FP16", "<f2", json=False),
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
"""Stands where a request gave no array for an optional input; no request can have its shape."""

MAX_ELEMENTS = 2**40
"""A shape whose product passes this is refused before anything is allocated."""


def element_count(shape: tuple[int, ...]) -> int:
    """Return the product of a shape's dimensions; Python integers, so it cannot overflow."""
    count = 1
    for dim in shape:
        count *= dim
    return count
