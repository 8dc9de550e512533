"""PID files, `run/<component>.json`: the process of each component, so that leftovers of a kill -9 can be ended.

`fairlead up` writes the records of web, worker and agent; the agent those of the gateway and the replicas. A record
holds `{"pid", "start_ticks", "restarts", "message"}`; `pid` is null while the component is down. The control plane
shows a restart and its message as an event.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from fairlead_cli.up import processes
from fairlead_cli.up.home import Home, write_atomic


@dataclass(frozen=True, slots=True)
class Record:
    """One component of the platform as last started."""

    pid: int | None
    start_ticks: int | None
    restarts: int = 0
    message: str = ""


class Records:
    """Records of the components of one home; those that a full disk refuses are kept, and written once it has room.

    Args:
        say: receives one sentence when that begins, and one when it is over.
    """

    def __init__(self, home: Home, say: Callable[[str], None]) -> None:
        self._home = home
        self._say = say
        self._waiting: dict[str, Record] = {}

    @property
    def wait(self) -> bool:
        """Whether a record waits for disk space."""
        return bool(self._waiting)

    def write(self, component: str, record: Record) -> None:
        """Record how `component` runs now."""
        path = self._home.run / f"{component}.json"
        try:
            write_atomic(path, json.dumps(asdict(record)) + "\n")
        except OSError as error:
            if not self._waiting:
                self._say(f"{path} cannot be written ({error.strerror}); everything runs on, and it is tried again")
            self._waiting[component] = record
            return
        if self._waiting.pop(component, None) and not self._waiting:
            self._say("there is room again: all records are written")

    def write_waiting(self) -> None:
        """Retry failed writes."""
        for component, record in list(self._waiting.items()):
            self.write(component, record)

    def remove(self, component: str) -> None:
        """Remove the record of `component`, which ended as intended."""
        self._waiting.pop(component, None)
        (self._home.run / f"{component}.json").unlink(missing_ok=True)


def _read(path: Path) -> Record | None:
    """Return the record; None where the file does not hold one (it is damaged, or of an older version)."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Record(int(fields["pid"]), int(fields["start_ticks"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def end_leftovers(home: Home, *, spare: frozenset[str] = frozenset(), patience_s: float = 5.0) -> list[str]:
    """End leftovers of recorded components, whole process groups; returns the names of those that still ran.

    Args:
        home: whose records.
        spare: components to leave running.
        patience_s: how long they may take to end by themselves.
    """
    groups: dict[int, str] = {}
    paths = [path for path in sorted(home.run.glob("*.json")) if path.stem not in spare]
    for path in paths:
        record = _read(path)
        if record is not None and record.pid is not None and _still_ours(home, record):
            groups[record.pid] = path.stem
    processes.end_groups(groups, patience_s=patience_s)
    for path in paths:
        path.unlink(missing_ok=True)
    return sorted(groups.values())


def _still_ours(home: Home, record: Record) -> bool:
    """Return whether the recorded process, or a child that outlived it in its group, runs.

    A child's start time is not recorded; its environment shows that it was started for this home.
    """
    assert record.pid is not None and record.start_ticks is not None  # noqa: S101, PT018 - `_read` made them numbers
    leader = processes.stat(record.pid)
    if leader is not None and leader.alive:
        return leader.start_ticks == record.start_ticks and leader.group == record.pid
    members = processes.group_members(record.pid)
    return any(processes.has_variable(member, "FAIRLEAD_HOME", str(home.path)) for member in members)
