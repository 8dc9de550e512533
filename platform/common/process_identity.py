"""Process identity that survives pid reuse, so that others on the same machine can check whether it still runs.

A process is named by its id and its start time in clock ticks since boot, since ids are reused; a place is one
kernel since its boot and one namespace of process ids: in another container the same number is another process.
"""

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


@dataclass(frozen=True, slots=True)
class ProcessName:
    """One process; `place` is empty where it is unknown (no /proc), and the identity then names no process."""

    place: str
    pid: int
    start_ticks: int

    def __str__(self) -> str:
        return f"{self.place}.{self.pid}.{self.start_ticks}"


def myself() -> ProcessName:
    """Return the name of this process."""
    pid = os.getpid()
    return ProcessName(_place(), pid, start_ticks(pid) or 0)


def parse(text: str) -> ProcessName | None:
    """Return the process that `str` wrote; None for another text."""
    place, _, numbers = text.partition(".")
    pid, _, ticks = numbers.partition(".")
    return ProcessName(place, int(pid), int(ticks)) if pid.isdecimal() and ticks.isdecimal() else None


def start_ticks(pid: int) -> int | None:
    """Return the start time of `pid`, in clock ticks since boot; None if no such process runs (a zombie does not)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name is in parentheses and may hold any character, so count from the last one.
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


@cache
def _place() -> str:
    try:
        where = f"{_BOOT_ID.read_text(encoding='ascii').strip()} {_NAMESPACE.readlink()}"
    except OSError:
        return ""
    return hashlib.sha256(where.encode()).hexdigest()[:12]
