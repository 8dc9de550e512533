"""System shared memory that clients register, to pass tensors without the network (Triton: shared memory extension).

A region is a window of a POSIX shared memory object, which on Linux is a file in /dev/shm. It is read and written by
system calls and not mapped: a client may shrink its object at any time, which costs a short read here, but would kill
the process through a mapping; and checked content cannot change before it is used.
"""

import os
import stat
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import InvalidArgument, NotFound, Unsupported

FOLDER = Path("/dev/shm")  # noqa: S108 - where POSIX shared memory is

MAX_REGIONS = 512
"""Limit of regions; each holds a file descriptor."""

_MAX_NAME = 255


class Slice(NamedTuple):
    """Position of a tensor in a registered region, in bytes."""

    region: str
    offset: int
    byte_size: int


class Region(NamedTuple):
    """A region, as status reports it."""

    name: str
    key: str
    offset: int
    byte_size: int


class Copies(Protocol):
    """Counts copies out of regions, in any thread, until they are freed."""

    def add(self, size_bytes: int, before_bytes: int) -> int:
        """Count a copy before it is made, and return how much to take off for it; raises ServingError for too much.

        Args:
            before_bytes: bytes that the same request has copied already.
        """
        ...

    def remove(self, size_bytes: int) -> None: ...


class SharedMemory:
    """The regions of a server, shared by its protocols.

    Args:
        allowed: --allow-client-shm; everything is refused without it.
        max_read_bytes: limit per request, like a body's; an object may claim more than the machine has.

    Attributes:
        copies: counts tensors while they are in use; None for no counting.
    """

    copies: Copies | None = None

    def __init__(self, *, allowed: bool, max_read_bytes: int = 64 * 1024 * 1024) -> None:
        self.allowed = allowed
        self._max_read_bytes = max_read_bytes
        self._windows: dict[str, _Window] = {}

    def register(self, name: str, key: str, offset: int, byte_size: int) -> None:
        """Open a shared memory object and register a window of it by name.

        Raises InvalidArgument for a name in use, a key that is no plain name, a missing object, or a window beyond it.
        """
        self._check_allowed()
        if not name or len(name) > _MAX_NAME:
            raise InvalidArgument(f"the name of a shared memory region must have 1 to {_MAX_NAME} characters")
        if name in self._windows:
            raise InvalidArgument(f"shared memory region '{name}' is already registered; unregister it first")
        if len(self._windows) >= MAX_REGIONS:
            raise InvalidArgument(f"{MAX_REGIONS} shared memory regions are registered, which is the limit")
        self._windows[name] = _Window(Region(name, key, offset, byte_size))

    def unregister(self, name: str = "") -> None:
        """Unregister a region, all of them for no name; an unknown one is no error (Triton)."""
        self._check_allowed()
        if name:
            self._windows.pop(name, None)
        else:
            self._windows.clear()

    def status(self, name: str = "") -> Iterator[Region]:
        """Yield one region, all of them for no name; raises NotFound for an unknown one."""
        self._check_allowed()
        windows = [self._window(name)] if name else list(self._windows.values())
        return iter([window.region for window in windows])

    def check(self, part: Slice) -> None:
        """Raise InvalidArgument or NotFound unless the slice lies within a registered region."""
        self._check_allowed()
        self._window(part.region).check(part)

    def read(self, part: Slice, *, before_bytes: int = 0) -> memoryview:
        """Return a copy of a slice; raises InvalidArgument or NotFound.

        Args:
            before_bytes: bytes that the same request has read already.
        """
        self.check(part)
        if before_bytes + part.byte_size > self._max_read_bytes:
            raise InvalidArgument(
                f"the request's inputs in shared memory are larger than {self._max_read_bytes} bytes, "
                "which is the server's --http-max-input-size"
            )
        return self._window(part.region).read(part)

    def tensor(self, part: Slice, decode: Callable[[memoryview], Array], *, before_bytes: int = 0) -> Array:
        """Return the result of `decode` on a copy of a slice; it is counted until the tensor and its views are freed.

        Raises InvalidArgument, NotFound, or what `copies` raises for too much.

        Args:
            before_bytes: bytes that the same request has read already.
        """
        if self.copies is None:
            return decode(self.read(part, before_bytes=before_bytes))
        self.check(part)
        counted_bytes = self.copies.add(part.byte_size, before_bytes)
        try:
            array = decode(self.read(part, before_bytes=before_bytes))
        except BaseException:
            self.copies.remove(counted_bytes)
            raise
        weakref.finalize(_owner(array), self.copies.remove, counted_bytes).atexit = False
        return array

    def write(self, part: Slice, content: Any) -> int:
        """Write an object with the buffer interface and return its length in bytes.

        Raises InvalidArgument or NotFound, also where the content is longer than the slice.
        """
        self.check(part)
        view = memoryview(content)
        if view.nbytes > part.byte_size:
            raise InvalidArgument(
                f"shared memory region '{part.region}': {part.byte_size} bytes cannot hold an output of {view.nbytes}"
            )
        self._window(part.region).write(part, view)
        return view.nbytes

    def _window(self, name: str) -> "_Window":
        window = self._windows.get(name)
        if window is None:
            raise NotFound(f"shared memory region '{name}' is not registered")
        return window

    def _check_allowed(self) -> None:
        if not self.allowed:
            raise Unsupported("shared memory of clients is off; start the server with --allow-client-shm=true")


def _owner(array: Array) -> Array:
    """Return the array that all views of this one keep alive."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class _Window:
    """An open shared memory object; closed with its last reference."""

    def __init__(self, region: Region) -> None:
        self.region = region
        name = region.key.removeprefix("/")
        if not name or "/" in name or "\0" in name or name in (".", "..") or len(name) > _MAX_NAME:
            raise InvalidArgument(f"shared memory key '{region.key[:300]}' must be a plain name, such as '/input_data'")
        if region.offset < 0 or region.byte_size < 1:
            raise InvalidArgument(
                f"shared memory region '{region.name}' must have an offset >= 0 and a byte_size >= 1, "
                f"found {region.offset} and {region.byte_size}"
            )
        try:
            self._file = os.open(FOLDER / name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise InvalidArgument(
                f"shared memory object '{region.key}' cannot be opened: {os.strerror(error.errno or 0)}"
            ) from error
        self._close = weakref.finalize(self, os.close, self._file)
        status = os.fstat(self._file)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidArgument(f"'{region.key}' is not a shared memory object")
        if region.offset + region.byte_size > status.st_size:
            raise InvalidArgument(
                f"shared memory object '{region.key}' has {status.st_size} bytes, which is less than offset "
                f"{region.offset} and byte_size {region.byte_size} of region '{region.name}' need"
            )

    def check(self, part: Slice) -> None:
        if part.offset < 0 or part.byte_size < 0 or part.offset + part.byte_size > self.region.byte_size:
            raise InvalidArgument(
                f"offset {part.offset} and byte size {part.byte_size} reach beyond the {self.region.byte_size} bytes "
                f"of shared memory region '{self.region.name}'"
            )

    def read(self, part: Slice) -> memoryview:
        content = bytearray(part.byte_size)
        read = os.preadv(self._file, [content], self.region.offset + part.offset) if content else 0
        if read != part.byte_size:
            raise self._shrunk()
        return memoryview(content)

    def write(self, part: Slice, content: memoryview) -> None:
        if self.region.offset + part.offset + content.nbytes > os.fstat(self._file).st_size:
            raise self._shrunk()
        if content.nbytes:
            os.pwrite(self._file, content, self.region.offset + part.offset)

    def _shrunk(self) -> InvalidArgument:
        return InvalidArgument(f"the shared memory object behind region '{self.region.name}' has become smaller")
