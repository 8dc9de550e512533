"""Shared memory arena, one-directional: the sender places regions in an `Arena`, the receiver maps them by a `Window`.

    sender: place -> write -> (message: start, size)      receiver: view ... the last view is gone -> released
            free  <- (message: freed)                  <-

A region belongs to the receiver until its last reference there is gone, so that a kept array keeps its content.
"""

import mmap
import os
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np

from serving_runtime.common.datatypes import Array

ALIGNMENT = 64
_FIRST_BYTES = 1 << 20
_KEPT_BYTES = 32 << 20
"""Pages that an empty arena keeps."""


class Arena:
    """The sender's side; thread-safe.

    Args:
        fd: of the memory; this object owns it from now on.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._size = 0
        self._free: list[tuple[int, int]] = []
        self._taken: dict[int, int] = {}
        self._mapping: mmap.mmap | None = None

    def place(self, size: int) -> tuple[int, memoryview]:
        """Return the start of a region of at least `size` bytes, and the region to write to; grows on demand."""
        size = -(-size // ALIGNMENT) * ALIGNMENT
        with self._lock:
            start = self._found(size)
            if start is None:
                self._grow(size)
                start = self._found(size)
            assert start is not None, "the arena has just grown by as much"  # noqa: S101
            assert self._mapping is not None  # noqa: S101
            self._taken[start] = size
            return start, memoryview(self._mapping)[start : start + size]

    def free(self, start: int) -> None:
        """Free a region that the receiver has released."""
        with self._lock:
            size = self._taken.pop(start)
            self._free = _merged([*self._free, (start, size)])
            if not self._taken and self._size > _KEPT_BYTES and self._mapping is not None:
                self._mapping.madvise(mmap.MADV_REMOVE)

    @property
    def taken_bytes(self) -> int:
        """Return how much the receiver has not released."""
        return sum(self._taken.values())

    def close(self) -> None:
        os.close(self._fd)
        self._mapping = None

    def _found(self, size: int) -> int | None:
        for number, (start, length) in enumerate(self._free):
            if length >= size:
                rest = [(start + size, length - size)] if length > size else []
                self._free[number : number + 1] = rest
                return start
        return None

    def _grow(self, size: int) -> None:
        grown = max(self._size * 2, self._size + size, _FIRST_BYTES)
        os.ftruncate(self._fd, grown)
        self._mapping = mmap.mmap(self._fd, grown)  # the old mapping goes with the last view of it
        self._free = _merged([*self._free, (self._size, grown - self._size)])
        self._size = grown


class Window:
    """The receiver's side.

    Attributes:
        released: starts of regions without references; appended to by any thread that collects garbage.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._mapping: mmap.mmap | None = None
        self._address = 0
        self.released: deque[int] = deque()

    def view(self, start: int, size: int) -> Array:
        """Return a region's bytes; released once neither the array nor any view of it is left."""
        if self._mapping is None or start + size > len(self._mapping):
            self._mapping = mmap.mmap(self._fd, os.fstat(self._fd).st_size)
            self._address = np.frombuffer(self._mapping, np.uint8).__array_interface__["data"][0]
        region = _Region(self._mapping, self._address + start, size)
        weakref.finalize(region, self.released.append, start).atexit = False
        return np.asarray(region)

    def close(self) -> None:
        os.close(self._fd)
        self._mapping = None


class _Region:
    """Base object, in numpy, of all views of a region (numpy: the array interface)."""

    __slots__ = ("__array_interface__", "__weakref__", "_mapping")

    def __init__(self, mapping: mmap.mmap, address: int, size: int) -> None:
        self._mapping = mapping
        self.__array_interface__: dict[str, Any] = {
            "data": (address, False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }


def _merged(free: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return free ranges in order, neighbours merged."""
    merged: list[tuple[int, int]] = []
    for start, size in sorted(free):
        if merged and sum(merged[-1]) == start:
            merged[-1] = (merged[-1][0], merged[-1][1] + size)
        else:
            merged.append((start, size))
    return merged
