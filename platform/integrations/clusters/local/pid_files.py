"""PID files, `run/<component>.json`: the process of each component, to find leftovers of a kill -9 at the next start.

A process is named by its id and its start time in clock ticks since boot, since ids are reused. `fairlead up` writes
the records of web, worker and agent; the agent those of the gateway and the replicas, and ends only these.
"""

import json
import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from common.process_identity import start_ticks
from integrations.clusters.local.files import write_json

AGENT = "agent"


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One component as last started; `pid` is None while it is down."""

    pid: int | None
    start_ticks: int | None
    restarts: int = 0
    message: str = ""
    started_by: str = ""


def is_alive(record: ProcessRecord) -> bool:
    """Return whether exactly the recorded process still runs."""
    return record.pid is not None and record.start_ticks is not None and start_ticks(record.pid) == record.start_ticks


def write_record(path: Path, record: ProcessRecord) -> None:
    write_json(path, asdict(record))


def read_record(path: Path) -> ProcessRecord | None:
    """Return the record; None where the file is missing or damaged: nothing is to be ended or shown then."""
    try:
        value = json.loads(path.read_bytes())
        pid, ticks = value["pid"], value["start_ticks"]
        return ProcessRecord(
            pid=None if pid is None else int(pid),
            start_ticks=None if ticks is None else int(ticks),
            restarts=int(value.get("restarts", 0)),
            message=str(value.get("message", "")),
            started_by=str(value.get("started_by", "")),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def end_leftovers(run_folder: Path, *, patience_s: float, spare: Collection[str] = ()) -> list[str]:
    """End leftovers of an earlier agent, except `spare`, and remove their records; returns names of those that ran.

    Blocks for at most `patience_s` and the time the kernel takes to end killed processes.
    """
    left = {name: record for name, record in _leftovers(run_folder) if name not in spare}
    names = sorted(left)
    number = signal.SIGTERM
    deadline = time.monotonic() + patience_s
    for record in left.values():
        _signal_group(record, number)
    while left := {name: record for name, record in left.items() if is_alive(record)}:
        if number is signal.SIGTERM and time.monotonic() >= deadline:
            number = signal.SIGKILL
            for record in left.values():
                _signal_group(record, number)
        time.sleep(0.02)
    for path in run_folder.glob("*.json"):
        forgotten = read_record(path)
        if path.stem not in spare and forgotten is not None and forgotten.started_by == AGENT:
            path.unlink()
    return names


def _leftovers(run_folder: Path) -> Iterator[tuple[str, ProcessRecord]]:
    for path in run_folder.glob("*.json"):
        record = read_record(path)
        if record is not None and record.started_by == AGENT and is_alive(record):
            yield path.stem, record


def _signal_group(record: ProcessRecord, number: signal.Signals) -> None:
    """Signal the process and its children; every process the agent starts leads a group of its own."""
    assert record.pid is not None  # noqa: S101 - it is alive
    with suppress(ProcessLookupError):
        os.killpg(record.pid, number)
