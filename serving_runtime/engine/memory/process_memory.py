"""How much memory this process has and uses, and how freed memory is given back."""

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
    """Return how much of this process is in memory."""
    return _kilobytes(_STATUS, "VmRSS:")


def mapped_bytes() -> int:
    """Return the address space of this process."""
    return _kilobytes(_STATUS, "VmSize:")


def _peak_bytes() -> int:
    return _kilobytes(_STATUS, "VmHWM:")


class Growth:
    """How much this process has grown over some work.

    Attributes:
        size_bytes: None where other such work ran beside it, so that nobody can say whose it is.
        peak_bytes: the same while it went on, where that was the most the process ever had; else as at its end.
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
    """Return the most memory this process may have: its control groups' limit, or the machine's memory."""
    limits = [_kilobytes(memory, "MemTotal:")]
    for file in _limit_files(cgroups, own):
        try:
            text = file.read_text().strip()
        except OSError:  # this kind of control group is not there
            continue
        if text.isdecimal():  # "max" is none
            limits.append(int(text))
    return min(limits)


def _limit_files(cgroups: Path, own: Path) -> Iterator[Path]:
    """Yield the files with the limits of this process's control group and of all around it, of either version."""
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
"""Of one piece; glibc takes no more (mallopt(3), M_MMAP_THRESHOLD)."""

_KEPT_BYTES = 64 * 1024 * 1024
"""Of free memory at the end of the heap."""


def keep_one_heap() -> None:
    """Have all threads share one heap, which keeps what is freed until `give_back`, as far as that is not very much.

    Threads' own heaps keep up to 64 MiB at their ends, each, whatever malloc_trim is told: models that have been
    unloaded would go on taking memory. And by glibc's own limits each request with an image asks the kernel for its
    memory anew, page by page: a third of the processor time of one in JSON; a large batch takes five times as long.
    """
    if hasattr(_libc, "mallopt"):
        _libc.mallopt(_M_ARENA_MAX, 1)
        _libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
        _libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def give_back() -> None:
    """Return freed memory to the operating system, which glibc else keeps for later."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)
