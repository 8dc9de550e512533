"""UBJSON parser for XGBoost files (Universal Binary JSON, draft 12), bounds-checked. Pure.

Typed arrays are numpy's, on the file's bytes; all else becomes the types of Python's json.
"""

import struct
from typing import Any

import numpy as np

_DTYPES = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_NUMBERS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_CONSTANTS = {b"T": True, b"F": False, b"Z": None}
_MAX_DEPTH = 64


def decode(content: bytes) -> Any:
    """Return the single value in the bytes; raises ValueError for none, or more."""
    reader = _Reader(content)
    value = reader.value(reader.take(1), 0)
    if reader.at != len(content):
        raise ValueError("bytes follow its end")
    return value


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or count > len(self._content) - self.at:
            raise ValueError("it ends too early")
        self.at += count
        return self._content[self.at - count : self.at]

    def value(self, marker: bytes, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError("it is nested too deep")
        if marker == b"{":
            return self._object(depth)
        if marker == b"[":
            return self._array(depth)
        if marker == b"S":
            return self._text()
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        form = _NUMBERS.get(marker)
        if form is None:
            raise ValueError(f"it has a value of the unknown type {marker!r}")
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def _length(self) -> int:
        marker = self.take(1)
        if marker not in (b"i", b"U", b"I", b"l", b"L"):
            raise ValueError(f"it has a length of the type {marker!r}")
        length: int = self.value(marker, 0)
        if length < 0:
            raise ValueError("it has a negative length")
        return length

    def _text(self) -> str:
        return self.take(self._length()).decode()

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._content[self.at : self.at + 1] != b"}":
            name = self._text()
            if name in found:
                raise ValueError(f"it has '{name}' twice")
            found[name] = self.value(self.take(1), depth + 1)
        self.at += 1
        return found

    def _array(self, depth: int) -> Any:
        marker = self.take(1)
        if marker == b"$":
            dtype = _DTYPES.get(self.take(1))
            if dtype is None or self.take(1) != b"#":
                raise ValueError("it has an array of an unknown type")
            content = self.take(self._length() * np.dtype(dtype).itemsize)
            return np.frombuffer(content, dtype)
        if marker == b"#":
            count = self._length()
            if count > len(self._content) - self.at:
                raise ValueError("it ends too early")
            return [self.value(self.take(1), depth + 1) for _ in range(count)]
        found = []
        while marker != b"]":
            found.append(self.value(marker, depth + 1))
            marker = self.take(1)
        return found
