"""Named tensor, apart from its encoding; `integrations.v2.tensors` decodes it and decisions compare it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# V2's datatypes and the numpy types of their values. numpy has no BF16: its values are kept, exactly, as FP32. An
# element of BYTES is an object of type bytes.
DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    **{f"UINT{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
    "BF16": np.dtype("<f4"),
    "BYTES": np.dtype(object),
}


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """One tensor.

    Attributes:
        datatype: V2's, such as FP32.
        values: in the tensor's shape, row-major, of the type that `DTYPES` has for the datatype.
    """

    datatype: str
    values: Array

    def equals(self, other: "Tensor") -> bool:
        """Return whether both are equal in datatype, shape and values, bit by bit, with NaN equal to NaN."""
        if self.datatype != other.datatype or self.values.shape != other.values.shape:
            return False
        is_float = self.values.dtype.kind == "f"
        return bool(np.array_equal(self.values, other.values, equal_nan=is_float))
