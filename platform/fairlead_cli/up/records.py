"""`run/<component>.json`: which process is which part of the platform, so that leftovers of a kill -9 can be ended.

`fairlead up` writes the records of web, worker and agent; the agent those of the gateway and the replicas. A record
holds `{"pid", "start_ticks", "restarts", "message"}`; `pid` is null while the part is down. The control plane shows a
restart and its message as an event.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from fairlead_cli.up import processes
from fairlead_cli.up.home import Home, write_atomic


@dataclass(frozen=True, slots=True)
class Record:
    """One part of the platform as it was last started."""

    pid: int | None
    start_ticks: int | None
    restarts: int = 0
    message: str = ""


def write(home: Home, component: str, record: Record) -> None:
    """Note how `component` runs now."""
    write_atomic(home.run / f"{component}.json", json.dumps(asdict(record)) + "\n")


def remove(home: Home, component: str) -> None:
    """Forget `component`, which ended as asked."""
    (home.run / f"{component}.json").unlink(missing_ok=True)


def _read(path: Path) -> Record | None:
    """Return the record, or None where the file does not hold one (it was damaged, or is of an older version)."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Record(int(fields["pid"]), int(fields["start_ticks"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def end_leftovers(home: Home, *, spare: frozenset[str] = frozenset(), patience_s: float = 5.0) -> list[str]:
    """End what recorded components left running, whole process groups; returns the names of those that still ran.

    Args:
        home: whose records.
        spare: components that are alive on purpose.
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

    A child has no record of its own start time; that it was started for this home is seen in its environment.
    """
    assert record.pid is not None and record.start_ticks is not None  # noqa: S101, PT018 - `_read` made them numbers
    leader = processes.stat(record.pid)
    if leader is not None and leader.alive:
        return leader.start_ticks == record.start_ticks and leader.group == record.pid
    members = processes.group_members(record.pid)
    return any(processes.has_variable(member, "FAIRLEAD_HOME", str(home.path)) for member in members)
