"""Memory cgroups: the kernel limits the memory of each program's processes. See cgroups(7) and cgroup-v2.rst.

    own group of this process --- fairlead-... ---- 1-default.digits-00001-0
                                  one for each       one for each program, with its limit
                                  owner

All memory charged to a group counts: anonymous and shared memory, kernel memory, and the page cache, which the kernel
reclaims before it kills a process. In version 2, a group has either processes or controllers for its children.
"""

import os
import re
import signal
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from common.errors import Unavailable

_PROCESSES, _CONTROL, _CONTROLLERS = "cgroup.procs", "cgroup.subtree_control", "cgroup.controllers"
_LEAF = "fairlead-agent"
_DELEGATED = "user.delegate"  # systemd writes 1 to the groups that it leaves to others: CGROUP_DELEGATION.md
_ESCAPED = re.compile(r"\\([0-7]{3})")
_HUGE_PAGE = 2 << 20
_PATIENCE_S = 5.0
_LOOK_EVERY_S = 0.01


@dataclass(frozen=True, slots=True)
class Place:
    """A group of the hierarchy with a controller: version 1 or 2, and its folder."""

    version: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a group against its limit.

    Attributes:
        kills: how many of its processes the kernel has killed for memory.
        at_limit: whether it was at its own limit; else the machine was short of memory, or a parent group.
    """

    peak_bytes: int
    limit_bytes: int
    kills: int
    at_limit: bool


def place_of(cgroups: str, mounts: str, controller: str = "memory") -> Place | None:
    """Return the group of a process with a controller; None where it has none that can be seen. Pure.

    Args:
        cgroups: its /proc/PID/cgroup.
        mounts: its /proc/PID/mountinfo.
    """
    version, own = 0, ""
    for line in cgroups.splitlines():
        number, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            version, own = 1, path
            break
        if number == "0":
            version, own = 2, path
    if not version:
        return None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        (root, point), (kind, _, options) = before.split()[3:5], after.split(" ", 2)
        right = kind == "cgroup2" if version == 2 else kind == "cgroup" and controller in options.split(",")
        below = os.path.relpath(own, unescaped(root))
        if right and below.split("/")[0] != "..":
            return Place(version, Path(unescaped(point), below))
    return None


def unescaped(text: str) -> str:
    """Unescape a path of mountinfo, which has spaces and the like as octal numbers. Pure."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


def settings_of(version: int, limit_bytes: int) -> dict[str, int]:
    """Return the values for a group's files, required ones first. Pure.

    Swap is off: a program slowed by swapping is harder to find than one that ended.
    """
    if version == 2:
        return {"memory.max": limit_bytes, "memory.swap.max": 0, "memory.oom.group": 1}
    return {"memory.limit_in_bytes": limit_bytes, "memory.memsw.limit_in_bytes": limit_bytes}


def usage_of(version: int, files: Mapping[str, str], limit_bytes: int) -> Usage:
    """Return the usage that a group's files report; files that this kernel lacks are absent. Pure."""
    kept = dict(line.split() for line in files["memory.events" if version == 2 else "memory.oom_control"].splitlines())
    kills = int(kept.get("oom_kill", 0))
    if version == 2:
        return Usage(int(files.get("memory.peak", limit_bytes)), limit_bytes, kills, int(kept.get("oom", 0)) > 0)
    peak = int(files["memory.max_usage_in_bytes"])
    return Usage(peak, limit_bytes, kills, peak > limit_bytes - _HUGE_PAGE)  # some kernels count no memory.failcnt


_REPORTS = {
    1: ("memory.oom_control", "memory.max_usage_in_bytes"),
    2: ("memory.events", "memory.peak"),
}


class MemoryGroup:
    """The group of one program."""

    def __init__(self, place: Place, limit_bytes: int, busy: set[Path], *, make: bool = True) -> None:
        """Create it, or reuse the one of an earlier owner.

        It goes into `busy` where it cannot be removed yet. Raises OSError where it cannot be created.
        """
        self._place = place
        self.limit_bytes = limit_bytes
        self._busy = busy
        self.folder = place.folder
        if make:
            self._make()

    def _make(self) -> None:
        place, limit_bytes = self._place, self.limit_bytes
        self.folder.mkdir()
        try:
            for number, (name, value) in enumerate(settings_of(place.version, limit_bytes).items()):
                if not number or (self.folder / name).exists():
                    _write(self.folder / name, str(value))
        except OSError:
            self.folder.rmdir()
            raise

    @property
    def entry(self) -> str:
        """Return the file to which a process writes 0 to enter."""
        return str(self.folder / _PROCESSES)

    def usage(self) -> Usage | None:
        """Return its usage; None where it has been removed."""
        found = {}
        for name in _REPORTS[self._place.version]:
            with suppress(OSError):
                found[name] = (self.folder / name).read_text(encoding="ascii").strip()
        return usage_of(self._place.version, found, self.limit_bytes) if self.folder.exists() else None

    def remove(self) -> None:
        """Kill its remaining processes and remove it."""
        if not _remove(self.folder):
            self._busy.add(self.folder)


class MemoryGroups:
    """The groups of an owner's programs. Use it from one thread."""

    def __init__(self, place: Place) -> None:
        self.version = place.version
        self._folder = place.folder
        self._made = max((_number_of(each) for each in place.folder.iterdir() if each.is_dir()), default=0)
        self._busy: set[Path] = set()  # a killed process takes a moment to end

    @classmethod
    def below(cls, own: Place, name: str, *, spare: Collection[str] = ()) -> "MemoryGroups":
        """Create an owner's group, and end what an earlier one of this name left in its groups, except `spare`.

        Raises:
            OSError: this process may not create it, or a process in it does not end.
            Unavailable: version 2 has no memory controller here, or its own group has other processes.
        """
        parent = own.folder if own.version == 1 else _parent_of_groups(own.folder)
        folder = parent / name
        _end_all(folder, spare)
        if folder.exists():
            return cls(Place(own.version, folder))
        folder.mkdir()
        if own.version == 2:
            try:
                _write(folder / _CONTROL, "+memory")
            except OSError:
                folder.rmdir()
                raise
        return cls(Place(own.version, folder))

    def group(self, name: str, limit_bytes: int) -> MemoryGroup:
        """Create the group of a program; raises OSError where that fails."""
        self._busy -= {folder for folder in self._busy if _remove(folder)}
        self._made += 1
        return MemoryGroup(Place(self.version, self._folder / f"{self._made}-{name}"), limit_bytes, self._busy)

    def adopted(self, name: str, limit_bytes: int) -> MemoryGroup:
        """Return the group with this folder's name that an earlier owner made."""
        return MemoryGroup(Place(self.version, self._folder / name), limit_bytes, self._busy, make=False)

    def close(self) -> None:
        """Remove all; groups that do not end are left for the next owner of this name."""
        with suppress(OSError):
            _end_all(self._folder)


def own_place(controller: str = "memory") -> Place:
    """Return the group of this process with a controller; raises Unavailable where it has none that can be seen."""
    try:
        cgroups, mounts = [Path(f"/proc/self/{name}").read_text(encoding="utf-8") for name in ("cgroup", "mountinfo")]
    except OSError as error:
        raise Unavailable(f"cgroups cannot be read: {error}") from error
    if (found := place_of(cgroups, mounts, controller)) is None:
        raise Unavailable(f"no cgroup with a {controller} controller is mounted")
    return found


def _parent_of_groups(own: Path) -> Path:
    """Return the group of version 2 below which groups may have limits of memory.

    Only this process is ever moved, and only where it is alone.
    """
    if "memory" in _words(own / _CONTROL):
        return own
    above = own.parent
    if _is_delegated(above) and "memory" in _words(above / _CONTROLLERS) and not _processes(above):
        _write(above / _CONTROL, "+memory")
        return above
    if "memory" not in _words(own / _CONTROLLERS):
        raise Unavailable("the cgroup of the agent has no memory controller")
    if _processes(own) != {os.getpid()}:
        raise Unavailable("the cgroup of the agent has other processes too")
    (leaf := own / _LEAF).mkdir(exist_ok=True)
    _write(leaf / _PROCESSES, "0")
    try:
        _write(own / _CONTROL, "+memory")
    except OSError:
        _write(own / _PROCESSES, "0")
        leaf.rmdir()
        raise
    return own


def _is_delegated(folder: Path) -> bool:
    """Return whether systemd delegates a group to its unit, with processes in a subgroup: DelegateSubgroup=."""
    with suppress(OSError):
        return os.getxattr(folder, _DELEGATED) == b"1"
    return False


def _end_all(folder: Path, spare: Collection[str] = ()) -> None:
    """Remove an owner's groups and their processes, except those in `spare`; returns when they are gone.

    The group above them goes with them, unless one is spared.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while folder.exists():
        with suppress(FileNotFoundError):
            groups = [path for path in folder.iterdir() if path.is_dir()]
            ended = [_remove(each) for each in groups if each.name not in spare]
            if all(ended) and (len(ended) < len(groups) or _remove(folder)):
                return
        if time.monotonic() >= deadline:
            raise OSError(f"processes in the cgroup {folder.name} do not end")
        time.sleep(_LOOK_EVERY_S)


def _number_of(group: Path) -> int:
    """Return the unique number with which the name of a program's group begins."""
    number = group.name.partition("-")[0]
    return int(number) if number.isdecimal() else 0


def _remove(folder: Path) -> bool:
    """Kill a group's processes and remove it; returns whether it is gone."""
    try:
        for pid in _processes(folder):
            if pid:  # of another namespace of process ids it is 0
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _processes(folder: Path) -> set[int]:
    return set(map(int, _words(folder / _PROCESSES)))


def _words(file: Path) -> list[str]:
    return file.read_text(encoding="ascii").split()


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="ascii")
