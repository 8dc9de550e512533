"""Resident pages of files, such as libraries: which this process has mapped in, and how a forked child gets them too.

fork(2) leaves a child to map pages of files again as it touches them. What a child is measured to grow by would then
have parts of the libraries in it that its parent had mapped already.
"""

import ctypes
import os
from pathlib import Path

import numpy as np

_MAPS, _PAGES = Path("/proc/self/maps"), Path("/proc/self/pagemap")
_PAGE_BYTES, _ENTRY_BYTES = os.sysconf("SC_PAGE_SIZE"), 8
_PRESENT = 63
_POPULATE_READ = 22  # madvise; Linux 5.14

_libc = ctypes.CDLL(None, use_errno=True)

Ranges = tuple[tuple[int, int], ...]
"""Addresses and lengths in bytes."""


def of_files() -> Ranges:
    """Return the ranges of this process that are pages of files; empty where the kernel does not show them."""
    found: list[tuple[int, int]] = []
    try:
        with _PAGES.open("rb", buffering=0) as pages:
            for line in _MAPS.read_text().splitlines():
                place, rights, _, _, inode, *_ = line.split(maxsplit=5)
                if inode == "0" or not rights.startswith("r"):
                    continue
                start, end = (int(word, 16) for word in place.split("-"))
                pages.seek(start // _PAGE_BYTES * _ENTRY_BYTES)
                entries = np.frombuffer(pages.read((end - start) // _PAGE_BYTES * _ENTRY_BYTES), "<u8")
                found += _runs(start, (entries >> np.uint64(_PRESENT)).astype(np.int8))
    except OSError:
        return ()
    return tuple(found)


def map_in(ranges: Ranges) -> None:
    """Map the pages in; what the kernel does not support is left out."""
    for start, length in ranges:
        _libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), _POPULATE_READ)


def _runs(start: int, present: "np.ndarray[tuple[int], np.dtype[np.int8]]") -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(present, prepend=np.int8(0), append=np.int8(0))) * _PAGE_BYTES
    return [(start + int(first), int(last - first)) for first, last in edges.reshape(-1, 2)]
