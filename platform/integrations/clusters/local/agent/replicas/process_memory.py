"""Resident memory of process trees, from /proc: see proc_pid_status(5) and proc_pid_smaps(5).

Memory counts that the kernel cannot take back without swapping: anonymous pages and shared memory. Pages of files,
model files that are mapped among them, do not.
"""

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

# As in integrations/sandbox/launch.py: all of this is done each second.
# ruff: noqa: PTH115, PTH116, PTH123, PTH208

_EACH = re.compile(rb"^Rss(Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_ONCE = re.compile(rb"^Pss_(Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_MEMINFO = re.compile(rb"^(MemTotal|MemAvailable):\s+(\d+) kB", re.MULTILINE)
_SHARED_MEMORY = "dev/shm"
_MEMORY_FILE = "/memfd:"
_BLOCK_BYTES = 512


class ProcessTree:
    """Process tree; a look reads only processes that are new since the last."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}
        self._children: dict[int, set[int]] = {}

    def look(self) -> None:
        """Read the machine's processes."""
        pids = {int(name) for name in os.listdir("/proc") if name.isdecimal()}
        known = {pid: parent for pid, parent in self._parents.items() if pid in pids and (parent in pids or not parent)}
        for pid in pids - known.keys():
            with suppress(OSError):
                known[pid] = _parent(pid)
        children = defaultdict(set)
        for pid, parent in known.items():
            children[parent].add(pid)
        self._parents, self._children = known, dict(children)

    def children(self, parent: int) -> set[int]:
        """Return the children of a process."""
        return self._children.get(parent, set())

    def below(self, root: int) -> list[int]:
        """Return a process and all its descendants."""
        found, left = [], [root]
        while left:
            found.append(pid := left.pop())
            left += self.children(pid)
        return found


def user_namespace(pid: int) -> str:
    """Return the user namespace of a process; empty where it has ended."""
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/user")
    return ""


def bound(pids: Sequence[int]) -> int:
    """Return the upper bound of processes' memory, in bytes: shared pages count for each. The first is the root."""
    found = _own_shared_memory(pids[0])
    for pid in pids:
        with suppress(OSError):
            found += sum(int(size) << 10 for _, size in _EACH.findall(_read(f"/proc/{pid}/status")))
    return found


def exact(pids: Sequence[int]) -> int:
    """Return the memory of processes, in bytes: each page once, and memory files that none of them maps."""
    taken = {b"Anon": 0, b"Shmem": 0}
    files: dict[tuple[int, int], int] = {}
    for pid in pids:
        with suppress(OSError):
            for kind, size in _each_once(pid):
                taken[kind] += int(size) << 10
            files |= _memory_files(pid)
    return taken[b"Anon"] + max(taken[b"Shmem"], sum(files.values()) + _own_shared_memory(pids[0]))


def machine() -> tuple[int, int]:
    """Return the machine's total and available memory, in bytes."""
    found = {name: int(size) << 10 for name, size in _MEMINFO.findall(_read("/proc/meminfo"))}
    return found[b"MemTotal"], found[b"MemAvailable"]


def _parent(pid: int) -> int:
    text = _read(f"/proc/{pid}/stat")
    # The name is in parentheses and may hold any character, so count from the last one.
    return int(text[text.rindex(b")") + 2 :].split(None, 2)[1])


def _each_once(pid: int) -> list[tuple[bytes, bytes]]:
    """Return a process's memory by kind; shared pages count in full where its maps are hidden or absent."""
    try:
        found = _ONCE.findall(_read(f"/proc/{pid}/smaps_rollup"))
    except PermissionError:
        found = []
    return found or _EACH.findall(_read(f"/proc/{pid}/status"))


def _own_shared_memory(pid: int) -> int:
    """Return the size of a process's own /dev/shm; 0 where it sees the machine's."""
    own = f"/proc/{pid}/root/{_SHARED_MEMORY}"
    with suppress(OSError):
        if os.stat(own).st_dev != os.stat(f"/{_SHARED_MEMORY}").st_dev:
            found = os.statvfs(own)
            return (found.f_blocks - found.f_bfree) * found.f_frsize
    return 0


def _memory_files(pid: int) -> dict[tuple[int, int], int]:
    """Return the sizes of the memory files (memfd_create) that a process has open, by device and inode."""
    found = {}
    for name in os.listdir(folder := f"/proc/{pid}/fd"):
        with suppress(OSError):
            if os.readlink(path := f"{folder}/{name}").startswith(_MEMORY_FILE):
                file = os.stat(path)
                found[file.st_dev, file.st_ino] = file.st_blocks * _BLOCK_BYTES
    return found


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
