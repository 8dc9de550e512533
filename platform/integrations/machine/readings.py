"""Resource limit readings on Linux: see proc(5), inotify(7), cgroups(7) and user_namespaces(7).

What a process may not read, and what a system without /proc lacks, is unknown and no error.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from common.errors import Unavailable
from integrations.machine.limits import INSTANCES, MEMORY, OPEN_FILES, PROCESSES, WATCHES, Limit
from integrations.sandbox.memory_cgroup import Place, own_place

# As in integrations/clusters/local/agent/replicas/process_memory.py: this looks at each process of the machine.
# ruff: noqa: PTH115, PTH116, PTH123, PTH208

_NO_PROCESS, _NO_MEMORY = "no replica and no thread can be started", "replicas are ended"
_UNLIMITED = 1 << 60
_ENOUGH_FILES = 65536
_MOST_LINKS = 4096
"""Descriptors read per process: a process with more has connections, and opened its inotify instances before them."""
_SOFT_FILES = re.compile(r"^Max open files\s+(\d+)", re.MULTILINE)
_SOFT_PROCESSES = re.compile(r"^Max processes\s+(\d+)", re.MULTILINE)
_MEMINFO = re.compile(r"^(MemTotal|MemAvailable):\s+(\d+) kB", re.MULTILINE)
_CACHED = {
    1: re.compile(r"^total_(?:in)?active_file (\d+)$", re.MULTILINE),
    2: re.compile(r"^(?:in)?active_file (\d+)$", re.MULTILINE),
}
_MEMORY_FILES = {1: ("memory.usage_in_bytes", "memory.limit_in_bytes"), 2: ("memory.current", "memory.max")}


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    user: int
    threads: int


def read(parts: Mapping[str, int]) -> tuple[Limit, ...]:
    """Return every limit that can be read; `limits.tightest` picks those that matter. Raises nothing.

    Args:
        parts: the processes of the platform by name; open files are looked at in them and in all that descend from
            them.
    """
    processes = _processes()
    own = [process for process in processes.values() if process.user == os.geteuid()]
    return (*_open_files(parts, processes), *_process_limits(own), *_inotify(own), *_memory())


def _processes() -> dict[int, _Process]:
    found = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if not name.isdecimal():
                continue
            with suppress(OSError, ValueError, IndexError):
                text = _text(f"/proc/{name}/stat")
                # The name is in parentheses and may hold any character, so count from the last one.
                fields = text[text.rindex(")") + 2 :].split(None, 18)
                user = os.stat(f"/proc/{name}").st_uid
                found[int(name)] = _Process(int(name), int(fields[1]), user, int(fields[17]))
    return found


def _open_files(parts: Mapping[str, int], processes: Mapping[int, _Process]) -> Iterator[Limit]:
    breaks = "it answers no new connections and opens no files"
    children = defaultdict(list)
    for process in processes.values():
        children[process.parent].append(process.pid)
    roots = set(parts.values())
    for name, root in parts.items():
        left = [root]
        while left:
            pid = left.pop()
            left += [child for child in children[pid] if child not in roots]
            whose = name if pid == root else f"process {pid} of {name}"
            with suppress(OSError, ValueError):
                if soft := _SOFT_FILES.search(_text(f"/proc/{pid}/limits")):
                    most = int(soft[1])
                    yield Limit(OPEN_FILES, _count_open(pid), most, whose, breaks, _more_files(pid, most))
    with suppress(OSError, ValueError):
        used, _, most = map(int, _text("/proc/sys/fs/file-nr").split())
        if most < _UNLIMITED:
            remedy = f"raise it with `sudo sysctl fs.file-max={2 * most}`"
            yield Limit(OPEN_FILES, used, most, "this machine", "no program opens files", remedy)


def _more_files(pid: int, most: int) -> str:
    if most >= _ENOUGH_FILES:
        return f"look at what it has open with `ls -l /proc/{pid}/fd`"
    most = _ENOUGH_FILES
    return f"start the platform after `ulimit -n {most}`, under systemd with LimitNOFILE={most} in its unit"


def _count_open(pid: int) -> int:
    folder = f"/proc/{pid}/fd"
    return os.stat(folder).st_size or len(os.listdir(folder))  # Linux before 6.2 says 0


def _process_limits(own: list[_Process]) -> Iterator[Limit]:
    with suppress(OSError, ValueError):
        soft = _SOFT_PROCESSES.search(_text("/proc/self/limits"))
        if soft and not _is_root_of_the_machine():
            most, used = int(soft[1]), sum(process.threads for process in own)
            remedy = f"start the platform after `ulimit -u {2 * most}`, under systemd with LimitNPROC={2 * most}"
            yield Limit(PROCESSES, used, most, f"user {os.geteuid()}", _NO_PROCESS, remedy)
    with suppress(Unavailable):
        yield from group_processes(own_place("pids"))
    with suppress(OSError, ValueError, IndexError):
        used = int(_text("/proc/loadavg").split()[3].partition("/")[2])
        for name in ("threads-max", "pid_max"):
            most = int(_text(f"/proc/sys/kernel/{name}"))
            remedy = f"raise it with `sudo sysctl kernel.{name}={2 * most}`"
            yield Limit(PROCESSES, used, most, "this machine", _NO_PROCESS, remedy)


def _is_root_of_the_machine() -> bool:
    """Return whether Linux lets this user have any number of processes."""
    return os.geteuid() == 0 and _text("/proc/self/uid_map").split()[:2] == ["0", "0"]


def _inotify(own: list[_Process]) -> Iterator[Limit]:
    instances = watches = 0
    for process in own:
        with suppress(OSError):
            found = _watching(process.pid)
            instances, watches = instances + len(found), watches + sum(found)
    breaks = "programs of this user that watch files fail, others than the platform's too"
    for name, used, setting in (
        (INSTANCES, instances, "max_user_instances"),
        (WATCHES, watches, "max_user_watches"),
    ):
        with suppress(OSError, ValueError):
            most = int(_text(f"/proc/sys/fs/inotify/{setting}"))
            remedy = f"raise it with `sudo sysctl fs.inotify.{setting}={2 * most}`"
            yield Limit(name, used, most, f"user {os.geteuid()}", breaks, remedy)


def _watching(pid: int) -> list[int]:
    """Return how many watches each inotify instance of a process has; raises OSError where it shows none."""
    found = []
    for name in os.listdir(f"/proc/{pid}/fd")[:_MOST_LINKS]:
        with suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{name}") == "anon_inode:inotify":
                found.append(_text(f"/proc/{pid}/fdinfo/{name}").count("inotify wd:"))
    return found


def _memory() -> Iterator[Limit]:
    with suppress(OSError, KeyError):
        size = {name: int(kib) << 10 for name, kib in _MEMINFO.findall(_text("/proc/meminfo"))}
        used, most = size["MemTotal"] - size["MemAvailable"], size["MemTotal"]
        remedy = "stop services, or end other programs"
        yield Limit(MEMORY, used, most, "this machine", _NO_MEMORY, remedy)
    with suppress(Unavailable):
        yield from group_memory(own_place())


def group_processes(place: Place) -> Iterator[Limit]:
    """Yield the limits of processes of a cgroup and of those above it."""
    for folder in _with_those_above(place):
        with suppress(OSError, ValueError):
            used, most = int(_text(f"{folder}/pids.current")), _most(f"{folder}/pids.max")
            if most < _UNLIMITED:
                remedy = f"raise TasksMax= of its unit, or --pids-limit of its container, to {2 * most}"
                yield Limit(PROCESSES, used, most, f"the cgroup {folder}", _NO_PROCESS, remedy)


def group_memory(place: Place) -> Iterator[Limit]:
    """Yield the limits of memory of a cgroup and of those above it; cached pages of files do not count as used."""
    now, at_most = _MEMORY_FILES[place.version]
    for folder in _with_those_above(place):
        with suppress(OSError, ValueError):
            used, most = int(_text(f"{folder}/{now}")), _most(f"{folder}/{at_most}")
            cached = sum(map(int, _CACHED[place.version].findall(_text(f"{folder}/memory.stat"))))
            if most < _UNLIMITED:
                remedy = "stop services, or raise MemoryMax= of its unit, or --memory of its container"
                yield Limit(MEMORY, max(0, used - cached), most, f"the cgroup {folder}", _NO_MEMORY, remedy)


def _with_those_above(place: Place) -> Iterator[Path]:
    for folder in (place.folder, *place.folder.parents):
        if not (folder / "cgroup.procs").exists():
            return
        yield folder


def _most(path: str) -> int:
    text = _text(path).strip()
    return _UNLIMITED if text == "max" else int(text)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
