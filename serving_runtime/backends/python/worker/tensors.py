"""pb_utils.Tensor, and Triton's names and numbers for datatypes."""

from typing import Any

import numpy as np

from serving_runtime.backends.python.wire.packing import datatype_of
from serving_runtime.common.datatypes import BF16, BYTES, DATATYPES, FROM_CONFIG_NAME, Array
from serving_runtime.common.request import Tensor as WireTensor

_CPU = (1, 0)
"""DLPack: kDLCPU, device 0."""


class TritonModelException(Exception):  # noqa: N818 - Triton's name
    """Raised by the functions of this module."""


_NUMBERED = [
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "BYTES",
]  # fmt: skip
"""TRITONSERVER_DataType, from 1."""


class Tensor:
    """A name and an array; an array from the server is a view of shared memory."""

    def __init__(self, name: str, array: Array) -> None:
        if not isinstance(array, np.ndarray):
            raise TritonModelException(f"tensor '{name}' must be a numpy array, found {type(array).__name__}")
        datatype = datatype_of(array)
        if datatype is None:
            raise TritonModelException(f"tensor '{name}' has dtype {array.dtype}, which no datatype of V2 holds")
        self._wire = WireTensor(name, datatype, array)

    @classmethod
    def received(cls, wire: WireTensor) -> "Tensor":
        """Return a tensor of the server's."""
        tensor = cls.__new__(cls)
        tensor._wire = wire
        return tensor

    @property
    def wire(self) -> WireTensor:
        return self._wire

    def name(self) -> str:
        return self._wire.name

    def triton_dtype(self) -> int:
        name = self._wire.datatype.name
        return 14 if name == BF16.name else _NUMBERED.index(name) + 1

    def shape(self) -> list[int]:
        return list(self._wire.array.shape)

    def as_numpy(self) -> Array:
        if self._wire.datatype is BF16:
            raise TritonModelException(f"tensor '{self.name()}' is BF16, which numpy does not have")
        return self._wire.array

    def is_cpu(self) -> bool:
        return True

    def to_dlpack(self) -> Any:
        """Return a DLPack capsule of the same memory; raises TritonModelException for BYTES and BF16."""
        return self.__dlpack__()

    def __dlpack__(self, **options: Any) -> Any:
        if self._wire.datatype is BYTES:
            raise TritonModelException(f"tensor '{self.name()}' is BYTES, which DLPack does not have")
        return self.as_numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU

    @staticmethod
    def from_dlpack(name: str, tensor: Any) -> "Tensor":
        """Return a tensor of the same memory; `tensor` has `__dlpack__`, or is a capsule of one in this process."""
        if type(tensor).__name__ == "PyCapsule":
            tensor = _Capsule(tensor)
        try:
            return Tensor(name, np.from_dlpack(tensor))
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise TritonModelException(f"tensor '{name}' cannot be taken from DLPack: {error}") from error


class _Capsule:
    """A capsule as an object of the interface that numpy reads."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU


TRITON_STRING_TO_NUMPY: dict[str, Any] = {
    name: np.object_ if datatype is BYTES else datatype.dtype.type
    for name, datatype in FROM_CONFIG_NAME.items()
    if datatype is not BF16
}
TRITON_TO_NUMPY_TYPE: dict[int, Any] = {
    number: np.object_ if name == "BYTES" else DATATYPES[name].dtype.type for number, name in enumerate(_NUMBERED, 1)
}
NUMPY_TO_TRITON_TYPE: dict[Any, int] = {kind: number for number, kind in TRITON_TO_NUMPY_TYPE.items()} | {np.bytes_: 13}


def triton_string_to_numpy(triton_type_string: str) -> Any:
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def triton_to_numpy_type(data_type: int) -> Any:
    return TRITON_TO_NUMPY_TYPE[data_type]


def numpy_to_triton_type(data_type: Any) -> int:
    return NUMPY_TO_TRITON_TYPE[data_type]


def serialize_byte_tensor(input_tensor: Array) -> Array | None:
    """Return elements each after its length, as V2 sends them, in an array of one element."""
    if input_tensor.size == 0:
        return np.empty([0], dtype=np.object_)
    if input_tensor.dtype.kind not in "OS":
        return None
    parts = []
    for element in input_tensor.reshape(-1).tolist():
        text = element if isinstance(element, bytes) else str(element).encode()
        parts.append(len(text).to_bytes(4, "little") + text)
    return np.asarray(b"".join(parts), dtype=np.object_)


def deserialize_bytes_tensor(encoded_tensor: bytes) -> Array:
    """Return the elements in the result of `serialize_byte_tensor`."""
    elements = []
    position = 0
    while position < len(encoded_tensor):
        length = int.from_bytes(encoded_tensor[position : position + 4], "little")
        elements.append(encoded_tensor[position + 4 : position + 4 + length])
        position += 4 + length
    array = np.empty(len(elements), dtype=np.object_)
    array[:] = elements
    return array
