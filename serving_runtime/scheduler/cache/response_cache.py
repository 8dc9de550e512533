"""Response cache (Triton: response cache, local): LRU, bounded in bytes."""

import hashlib
import itertools
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from serving_runtime.common.datatypes import ABSENT, Array

_ENTRY_BYTES = 512
"""Overhead of an entry beside its arrays' contents: key, list and array objects."""

_ELEMENT_BYTES = 64
"""Overhead of a BYTES element beside its content."""


class ResponseCache:
    """Outputs of models by the digest of model version and inputs. Lives on the event loop.

    Attributes:
        used_bytes: approximate size of the entries, at most `size_bytes`.
    """

    def __init__(self, size_bytes: int) -> None:
        self.used_bytes = 0
        self._size_bytes = size_bytes
        self._namespaces = itertools.count()
        self._entries: OrderedDict[bytes, tuple[list[Array], int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def namespace(self) -> bytes:
        """Return a unique prefix for the digests of one loaded model version."""
        return next(self._namespaces).to_bytes(8, "little")

    def get(self, key: bytes) -> list[Array] | None:
        """Return the outputs under a key, read-only; None where they are absent or evicted."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: bytes, outputs: Sequence[Array]) -> None:
        """Store a copy of the outputs, evicting the least recently used; skipped where it exceeds the whole cache."""
        size = _ENTRY_BYTES + sum(_size_bytes(array) for array in outputs)
        if size > self._size_bytes or key in self._entries:
            return
        while self.used_bytes + size > self._size_bytes:
            _, (_, freed) = self._entries.popitem(last=False)
            self.used_bytes -= freed
        self._entries[key] = [_kept(array) for array in outputs], size
        self.used_bytes += size


def digest(namespace: bytes, arrays: Sequence[Array]) -> bytes:
    """Return a key that differs where the namespace or the inputs do; arrays are in the model's order."""
    found = hashlib.blake2b(namespace, digest_size=16)
    for array in arrays:
        if array is ABSENT:
            found.update(b"-")
            continue
        found.update(f"{array.dtype.str}{array.shape}".encode())
        if array.dtype == object:
            for element in array.ravel().tolist():
                found.update(len(element).to_bytes(8, "little"))
                found.update(element)
        else:
            found.update(np.ascontiguousarray(array).data)
    return found.digest()


def _kept(array: Array) -> Array:
    copy = array.copy()  # a returned array may be a view of a whole batch
    copy.setflags(write=False)
    return copy


def _size_bytes(array: Array) -> int:
    if array.dtype != object:
        return array.nbytes
    return array.nbytes + sum(len(element) + _ELEMENT_BYTES for element in array.ravel().tolist())
