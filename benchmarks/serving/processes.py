"""Servers as processes on a core of their own, what they use of it, and how they end."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

SERVER_CORE, CLIENT_CORE = "0", "1"

_ENDS = (signal.SIGINT, signal.SIGTERM)
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_READY_S, _END_S, _LOOK_EVERY_S = 180.0, 20.0, 0.02
_DYING_S = 1.0


def run_program(main: Callable[[], int | None]) -> NoReturn:
    """Run a program and end the process with its exit code.

    Ctrl-C and a SIGTERM end it in one line with 130 and 143, once every process that it started is stopped.
    """
    ended_by = 0

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        nonlocal ended_by
        ended_by = number
        for each in _ENDS:  # a second Ctrl-C would leave servers behind
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in _ENDS:
        signal.signal(each, end)
    try:
        code = main()
    except KeyboardInterrupt:
        for process in _STARTED:
            if process.runs:  # what was interrupted while it waited for it
                process.stop()
        sys.stderr.write("ended before it was done; nothing was written\n")
        code = 128 + ended_by
    sys.exit(code)


class Process:
    """A server and all that it starts, pinned to cores."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        cores: str = SERVER_CORE,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.log = log
        self.began = time.monotonic()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["taskset", "-c", cores, *command],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **_FEW_THREADS, **(environment or {})},
                cwd=folder,
                start_new_session=True,
            )

        _STARTED.append(self)

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until(self, ready: Callable[[], bool]) -> float:
        """Return how many seconds after its start the server is ready; raises RuntimeError when it is not in time."""
        while not ready():
            if self._process.poll() is not None:
                raise RuntimeError(self.ending())
            if time.monotonic() - self.began > _READY_S:
                raise RuntimeError(f"it was not ready after {_READY_S:.0f} s: {self._last_words()}")
            time.sleep(_LOOK_EVERY_S)
        return time.monotonic() - self.began

    def ending(self, *, within_s: float = _DYING_S) -> str:
        """Return how it ended, with its last words; empty where it goes on for so long."""
        try:
            code = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return ""
        return f"it ended with code {code}: {self._last_words()}"

    def cpu_s(self) -> float:
        """Return the processor time that it and all its children have used."""
        return sum(sum(map(int, fields[11:15])) for fields in self._stats()) / _TICKS_PER_S

    def rss_mb(self) -> float:
        """Return the resident memory of it and all its children, shared pages counted in each."""
        return sum(int(fields[21]) for fields in self._stats()) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def descriptors(self) -> int:
        """Return how many files and sockets it has open."""
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())

    def pause(self) -> None:
        """Stop it and its children for a while; they take nothing of the core meanwhile."""
        for pid in self._family():
            _signal(pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let them go on, the children first: a parent that looks after them must find them alive."""
        for pid in reversed(self._family()):
            _signal(pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it and its children."""
        family = list(self._family())
        self.resume()
        for sign in (signal.SIGTERM, signal.SIGKILL):
            for pid in [self.pid] if sign is signal.SIGTERM else family:
                _signal(pid, sign)
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                continue

    def _family(self) -> Sequence[int]:
        """Return what it started and is still there: its session, which outlives it, and all their children."""
        parents: dict[int, list[int]] = {}
        found = [self.pid]
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (fields := _stat(int(entry.name))) is not None:
                parent, session, pid = int(fields[1]), int(fields[3]), int(entry.name)
                parents.setdefault(parent, []).append(pid)
                found += [pid] if session == self.pid != pid else []
        for pid in found:
            found += [child for child in parents.get(pid, []) if child not in found]
        return found

    def _stats(self) -> Sequence[list[str]]:
        return [fields for pid in self._family() if (fields := _stat(pid)) is not None]

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1][-300:] if lines else "it said nothing"


_STARTED: list[Process] = []

_FEW_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Every server has one core: more threads of a library would only be in each other's way."""


def _signal(pid: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sign)


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat behind the program's name, from the state on; None for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def any_core() -> str:
    """Return the cores that this process may use, for what need not be pinned."""
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def answers(url: str, *, headers: Mapping[str, str] | None = None) -> Callable[[], bool]:
    """Return a function that says whether a URL is answered with 200."""
    request = urllib.request.Request(url, headers=dict(headers or {}))

    def ready() -> bool:
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    return ready
