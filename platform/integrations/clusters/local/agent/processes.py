"""A program the agent started: it leads a process group of its own, ends with the agent, has a log file and a record.

Start programs from the main thread only: they get a signal when the thread that started them ends, not the process.
"""

import asyncio
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.processes import start_ticks
from integrations.clusters.base.failures import MAX_LOG_BYTES
from integrations.clusters.local.agent.memory_limit import killed_by_kernel
from integrations.clusters.local.records import AGENT, ProcessRecord, write_record
from integrations.sandbox.command import command
from integrations.sandbox.memory_cgroup import MemoryGroup
from integrations.sandbox.policy import Sandbox

_MAX_LOG_BYTES = 10 << 20
_MAX_LAST_LINE = 300
_PR_SET_CHILD_SUBREAPER = 36


class _Orphans:
    """What programs leave running when they end: it becomes a child of this process, and is killed.

    Attributes:
        adopted: whether it does; from then on all children of this process must be programs that it started here.
        started: the process ids of those programs.
    """

    def __init__(self) -> None:
        self.adopted = False
        self.started: set[int] = set()

    def found(self) -> set[int]:
        """Return those that there are."""
        return _children() - self.started if self.adopted else set()

    def end(self) -> None:
        """Kill them; their own children become this process's, and are looked for again."""
        while orphans := self.found():
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


_orphans = _Orphans()


def adopt_orphans() -> None:
    """Have what programs leave running end with them, in sessions of its own too; see `_Orphans`."""
    _orphans.adopted = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def orphans() -> set[int]:
    """Return the processes that programs left running; see `_Orphans`."""
    return _orphans.found()


def _children() -> set[int]:
    """Return this process's children; none where the kernel does not list them."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):
            found |= set(map(int, (task / "children").read_text(encoding="ascii").split()))
    return found


@dataclass(frozen=True, slots=True)
class Program:
    """What to start, where its output goes and where it is noted.

    Attributes:
        env: all of its environment.
        sandbox: None starts it with all that the agent may.
        limits: of `resource`, by their names in lower case.
        folder: where it starts; None is where the agent is.
        left_open: descriptors of the agent that it inherits.
        group: limits its memory; None leaves it in the agent's.
    """

    command: Sequence[str]
    env: Mapping[str, str]
    log: Path
    record: Path
    sandbox: Sandbox | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    folder: Path | None = None
    left_open: Sequence[int] = ()
    group: MemoryGroup | None = None


class Process:
    """One started program. Use it from the event loop's thread."""

    def __init__(self, program: Program, *, restarts: int, message: str) -> None:
        """Start it; raises OSError where that is not possible, and InvalidInput for a FAIRLEAD_SANDBOX that is none.

        Its group is removed with it, and where it could not be started.
        """
        self.program = program
        try:
            self._start(restarts, message)
        except BaseException:
            if program.group is not None:
                program.group.remove()
            raise

    def _start(self, restarts: int, message: str) -> None:
        program = self.program
        program.log.parent.mkdir(parents=True, exist_ok=True)
        _rotate(program.log)
        self.started_at = time.time()
        folder = "" if program.folder is None else str(program.folder)
        group = "" if program.group is None else program.group.entry
        started = command(program.command, sandbox=program.sandbox, limits=program.limits, folder=folder, group=group)
        with program.log.open("ab") as log:
            self._log_start = log.tell()
            self._popen = subprocess.Popen(
                started,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(program.env),
                process_group=0,
                pass_fds=program.left_open,
            )
        _orphans.started.add(self._popen.pid)
        ticks = start_ticks(self._popen.pid)
        write_record(program.record, ProcessRecord(self._popen.pid, ticks, restarts, message, AGENT))
        self._pidfd = os.pidfd_open(self._popen.pid)
        self._ended = asyncio.get_running_loop().create_future()
        self._complaint = ""
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return not self._ended.done()

    async def ended(self) -> None:
        """Return when the program has ended, however it did."""
        await asyncio.shield(self._ended)

    async def ended_within(self, seconds: float) -> bool:
        """Return whether the program ended in time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ended(), seconds)
        return not self.running

    async def watched(self, watch: Coroutine[Any, Any, str]) -> str:
        """Run `watch` beside the program until either ends; returns how the program ended, as a part of a sentence.

        `watch` returns a complaint, for which the program is killed.
        """
        watching = asyncio.create_task(watch)
        ended = asyncio.create_task(self.ended())
        try:
            await asyncio.wait({watching, ended}, return_when=asyncio.FIRST_COMPLETED)
            complaint = "" if ended.done() else watching.result()
        finally:
            for task in (watching, ended):
                task.cancel()
            await asyncio.gather(watching, ended, return_exceptions=True)
        if self.running:
            await self.kill()
        return complaint or self._epitaph()

    async def stop(self, patience_s: float) -> None:
        """End it: SIGTERM, and SIGKILL after `patience_s`; returns when it is gone."""
        self._signal(signal.SIGTERM)
        if not await self.ended_within(patience_s):
            await self.kill()

    async def kill(self) -> None:
        """End it at once; returns when it is gone."""
        self._signal(signal.SIGKILL)
        await self.ended()

    def end_for_memory(self, complaint: str) -> None:
        """Kill it for the memory that it takes; `complaint` is a part of a sentence that says so."""
        if self.running:
            self._complaint = complaint
            self._signal(signal.SIGKILL)

    @property
    def ended_for_memory(self) -> bool:
        """Return whether it was killed for the memory that it took."""
        return bool(self._complaint)

    def forget(self) -> None:
        """Remove its record: it ended as asked."""
        self.program.record.unlink(missing_ok=True)

    @property
    def exit_code(self) -> int:
        """Return how it ended, 128 + N for signal N; only after its end."""
        code = -signal.SIGKILL if self.ended_for_memory else self._popen.returncode
        return code if code >= 0 else 128 - code

    def said(self) -> str:
        """Return the end of what it wrote since it was started, at most `MAX_LOG_BYTES`."""
        with self.program.log.open("rb") as log:
            log.seek(max(self._log_start, os.fstat(log.fileno()).st_size - MAX_LOG_BYTES))
            return log.read().decode(errors="replace")

    def _epitaph(self) -> str:
        if self._complaint:
            return self._complaint
        code = self._popen.returncode
        how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        last = self._last_line() if -code not in (signal.SIGKILL, signal.SIGTERM) else ""
        return f"{how} after {self._lasted_s:.1f} s" + (f": {last}" if last else "")

    def _last_line(self) -> str:
        lines = self.said().splitlines()
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return last if len(last) <= _MAX_LAST_LINE else last[: _MAX_LAST_LINE - 3] + "..."

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._signal(signal.SIGKILL)  # what it may have started itself; its id is not free before it is waited for
        self._popen.wait()
        _orphans.started.discard(self._popen.pid)
        _orphans.end()
        if self.program.group is not None:
            self._complaint = self._complaint or killed_by_kernel(self.program.group.usage())
            self.program.group.remove()
        self._lasted_s = time.time() - self.started_at
        self._ended.set_result(None)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._popen.pid, number)


def _rotate(log: Path) -> None:
    """Keep one older log; a program that is started again and again must not fill the disk."""
    with suppress(FileNotFoundError):
        if log.stat().st_size > _MAX_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
