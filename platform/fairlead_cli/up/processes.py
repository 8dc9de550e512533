"""Linux processes from /proc: which are alive, their groups, and how to end them for certain.

A process is named by its id and its start time (clock ticks since boot), since ids are reused.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_POLL_S = 0.02
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """One line of /proc/PID/stat, as far as it is needed."""

    pid: int
    state: str
    parent: int
    group: int
    start_ticks: int

    @property
    def alive(self) -> bool:
        """Return False for a zombie: it has ended and only waits for its parent."""
        return self.state not in "ZX"


def stat(pid: int) -> ProcessStat | None:
    """Return the kernel's data on `pid`; None if the process does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name is in parentheses and may hold any character, so count from the last one.
    fields = text[text.rindex(")") + 2 :].split()
    return ProcessStat(pid, fields[0], int(fields[1]), int(fields[2]), int(fields[19]))


def everyone() -> Iterator[ProcessStat]:
    """Yield every process on the machine, zombies too."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (seen := stat(int(entry.name))) is not None:
            yield seen


def is_running(pid: int, start_ticks: int) -> bool:
    """Return whether exactly this process still runs."""
    seen = stat(pid)
    return seen is not None and seen.alive and seen.start_ticks == start_ticks


def group_members(group: int) -> list[int]:
    """Return the ids of the processes of one group that are alive."""
    return [seen.pid for seen in everyone() if seen.group == group and seen.alive]


def has_variable(pid: int, name: str, value: str) -> bool:
    """Return whether `pid` was started with NAME=value in its environment."""
    with suppress(OSError):
        return f"{name}={value}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return False


def command_line(pid: int) -> str:
    """Return the command line of `pid`, shortened; empty if it cannot be read."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        text = " ".join(word for word in words if word)
        return text if len(text) <= 80 else text[:77] + "..."
    return ""


def signal_group(group: int, number: int) -> None:
    """Send a signal to a whole group; a group that is gone is no error."""
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def end_groups(groups: Iterable[int], *, patience_s: float) -> None:
    """End whole process groups: SIGTERM, wait for at most `patience_s`, then SIGKILL; returns when all are gone."""
    left = set(groups)
    for group in left:
        signal_group(group, signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    killed = False
    while left := _alive_groups(left):
        if not killed and time.monotonic() >= deadline:
            killed = True
            for group in left:
                signal_group(group, signal.SIGKILL)
        time.sleep(_POLL_S)


def _alive_groups(groups: set[int]) -> set[int]:
    if not groups:
        return set()
    return groups & {seen.group for seen in everyone() if seen.alive}


def adopt_orphans() -> None:
    """Make this process the subreaper of its descendants, so that none is lost when its parent dies."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def ends_with_parent(number: int = signal.SIGTERM) -> Callable[[], None]:
    """Return a `preexec_fn`: the child gets `number` when the thread that started it dies, by kill -9 too.

    It also unblocks the signals that a parent blocks to wait for them with `sigtimedwait`, which are inherited.
    """
    parent = os.getpid()

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return prepare


def started(
    arguments: Sequence[str], variables: Mapping[str, str], output: IO[bytes], errors: IO[bytes]
) -> "subprocess.Popen[bytes]":
    """Start this Python with the arguments; it ends with this process at the latest."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        preexec_fn=ends_with_parent(signal.SIGKILL),  # noqa: PLW1509 - the caller has one thread
    )


def completed(
    arguments: Sequence[str], variables: Mapping[str, str], *, timeout_s: float
) -> "subprocess.CompletedProcess[str]":
    """Run this Python with the arguments to its end, which comes with this process's at the latest.

    Raises:
        OSError: it could not be started.
        subprocess.TimeoutExpired: it took too long, and was killed.
    """
    return subprocess.run(
        [sys.executable, *arguments],
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        preexec_fn=ends_with_parent(signal.SIGKILL),
    )
