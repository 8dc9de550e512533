"""Memory of this process: usage, limits, and release of freed memory (malloc_trim)."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_MEMORY = Path("/proc/meminfo")
_STATUS = Path("/proc/self/status")


def resident_bytes() -> int:
    """Return the resident memory of this process (RSS)."""
    return _kilobytes(_STATUS, "VmRSS:")


def mapped_bytes() -> int:
    """Return the address space of this process."""
    return _kilobytes(_STATUS, "VmSize:")


def _peak_bytes() -> int:
    return _kilobytes(_STATUS, "VmHWM:")


class Growth:
    """Growth of this process over some work.

    Attributes:
        size_bytes: None where other measured work ran concurrently, so that the growth cannot be attributed.
        peak_bytes: peak of the growth, where it was the process's highest ever; else the growth at the end.
    """

    def __init__(self) -> None:
        self.size_bytes: int | None = None
        self.peak_bytes: int | None = None


_measuring: set[Growth] = set()
_overlapped: set[Growth] = set()
_lock = threading.Lock()


@contextmanager
def growth() -> Iterator[Growth]:
    """Measure by how much the block makes this process grow."""
    mine = Growth()
    with _lock:
        _measuring.add(mine)
        if len(_measuring) > 1:
            _overlapped.update(_measuring)
    before, peak_before = resident_bytes(), _peak_bytes()
    try:
        yield mine
    finally:
        with _lock:
            _measuring.discard(mine)
            if mine not in _overlapped:
                after, peak = resident_bytes(), _peak_bytes()
                mine.size_bytes = max(0, after - before)
                mine.peak_bytes = max(0, (peak if peak > peak_before else after) - before)
            _overlapped.discard(mine)


def limit_bytes(cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUPS, memory: Path = _MEMORY) -> int:
    """Return the memory limit of this process: its control groups' limit, or the machine's memory."""
    limits = [_kilobytes(memory, "MemTotal:")]
    for file in _limit_files(cgroups, own):
        try:
            text = file.read_text().strip()
        except OSError:  # this kind of control group is absent
            continue
        if text.isdecimal():  # "max" means no limit
            limits.append(int(text))
    return min(limits)


def _limit_files(cgroups: Path, own: Path) -> Iterator[Path]:
    """Yield the limit files of this process's control group and all its parents, of either version."""
    for line in own.read_text().splitlines() if own.is_file() else ():
        _, controllers, path = line.split(":", 2)
        inside = PurePosixPath(path.lstrip("/"))
        for group in (inside, *inside.parents):
            if not controllers:
                yield cgroups / group / "memory.max"
            elif "memory" in controllers.split(","):
                yield cgroups / "memory" / group / "memory.limit_in_bytes"


def _kilobytes(file: Path, field: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


_libc = ctypes.CDLL(None)
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # malloc.h

_LARGEST_KEPT_BYTES = 32 * 1024 * 1024
"""Upper limit of one allocation; glibc accepts no more (mallopt(3), M_MMAP_THRESHOLD)."""

_KEPT_BYTES = 64 * 1024 * 1024
"""Free memory kept at the end of the heap."""


def keep_one_heap() -> None:
    """Make all threads share one heap, which keeps freed memory until `give_back`, up to a large limit.

    Threads' own heaps keep up to 64 MiB at their ends, each, whatever malloc_trim requests: models that have been
    unloaded would go on taking memory. And by glibc's own limits each request with an image gets its memory from the
    kernel again, page by page: a third of the processor time of one in JSON; a large batch takes five times as long.
    """
    if hasattr(_libc, "mallopt"):
        _libc.mallopt(_M_ARENA_MAX, 1)
        _libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
        _libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def give_back() -> None:
    """Return freed memory to the operating system, which glibc else keeps for later."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)
