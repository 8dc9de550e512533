"""The processor time of a platform's processes, by part."""

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

Spent = dict[str, float]
_TICKS = os.sysconf("SC_CLK_TCK")
_PARTS = {
    "celery": "worker",
    "integrations.clusters.local.agent": "agent",
    "integrations.clusters.local.holder": "holder",
    "envoy": "gateway",
    "uvicorn": "web",
    "serving_runtime": "replicas",
}


def spent(pid: int) -> Spent:
    """Return the seconds of processor time of each part below a process, of those that run now."""
    found: Spent = defaultdict(float)
    for each in _below(pid):
        with suppress(FileNotFoundError, ProcessLookupError, IndexError):
            command = Path(f"/proc/{each}/cmdline").read_bytes().decode(errors="replace").split("\0")
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            found[_part(command)] += (int(fields[11]) + int(fields[12])) / _TICKS
    return found


def _part(command: list[str]) -> str:
    names = [Path(word).name for word in command]
    return next((part for word, part in _PARTS.items() if word in names), "others")


def _below(pid: int) -> Iterator[int]:
    yield pid
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _below(int(child))
