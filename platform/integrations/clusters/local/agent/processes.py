"""Process of the agent, started by the holder: it leads its own process group and has a log file and a record.

It outlives the agent and ends with the holder. Its note holds what the next agent needs to take it up.
"""

import asyncio
import os
import signal
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from common.process_identity import start_ticks
from integrations.clusters.base.failures import MAX_LOG_BYTES
from integrations.clusters.local.agent.replicas.memory_limit import killed_by_kernel
from integrations.clusters.local.holder.client import Held, Holder
from integrations.clusters.local.pid_files import AGENT, ProcessRecord
from integrations.clusters.local.state_files import StateFiles
from integrations.sandbox.command import command
from integrations.sandbox.memory_cgroup import MemoryGroup
from integrations.sandbox.policy import Sandbox

_MAX_LOG_BYTES = 10 << 20
_MAX_LAST_LINE = 300


@dataclass(frozen=True, slots=True)
class Program:
    """A program to start, with its log and its record.

    Attributes:
        env: all of its environment.
        sandbox: None starts it with all rights of the agent.
        limits: of `resource`, by their names in lower case.
        folder: its working directory; None is the holder's.
        left_open: descriptors that it inherits, as `FIRST_DESCRIPTOR` and the following numbers.
        group: its memory cgroup; None keeps the holder's.
        about: data for the next agent, as JSON.
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
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return its name in the holder."""
        return self.record.stem


@dataclass(frozen=True, slots=True)
class Note:
    """The holder's data on a program for the next agent.

    Attributes:
        log_start: where in the log its output begins.
        group: folder name and limit of its cgroup; None without one.
    """

    log: str
    record: str
    started_at: float
    log_start: int
    restarts: int
    message: str
    group: tuple[str, int] | None
    about: Mapping[str, Any]

    @classmethod
    def read(cls, held: Held) -> "Note":
        """Return the note of a program; raises TypeError, KeyError and ValueError where another release wrote it."""
        found = cls(**held.note)
        group = None if found.group is None else (str(found.group[0]), int(found.group[1]))
        return replace(found, group=group)


class Process:
    """One started program. Use it from the event loop's thread."""

    def __init__(self, holder: Holder, program: Program, files: StateFiles, *, restarts: int, message: str) -> None:
        """Start it; raises OSError where that fails, and InvalidInput for an unknown FAIRLEAD_SANDBOX.

        Its group is removed with it, and where it could not be started.
        """
        try:
            note, held = _started(holder, program, restarts, message)
        except BaseException:
            if program.group is not None:
                program.group.remove()
            raise
        files.put_json(program.record, _record(held, restarts, message))
        self._take(holder, program, files, note, held)

    @classmethod
    def adopted(cls, holder: Holder, held: Held, files: StateFiles, group: MemoryGroup | None = None) -> "Process":
        """Return a program that an earlier agent started, running or ended."""
        note = Note.read(held)
        program = Program((), {}, Path(note.log), Path(note.record), group=group, about=note.about)
        process = cls.__new__(cls)
        if not program.record.exists():  # the disk was full
            files.put_json(program.record, _record(held, note.restarts, note.message))
        process._take(holder, program, files, note, held)
        return process

    def _take(self, holder: Holder, program: Program, files: StateFiles, note: Note, held: Held) -> None:
        self.program = program
        self._files = files
        self.pid = held.pid
        self.started_at = note.started_at
        self.restarts = note.restarts
        self._holder = holder
        self._log_start = note.log_start
        self._complaint = ""
        self._status = held.status
        self._ended = asyncio.get_running_loop().create_future()
        try:
            self._pidfd = os.pidfd_open(held.pid) if held.status is None else -1
        except ProcessLookupError:  # it has ended since it was listed
            self._pidfd = -1
        if self._pidfd < 0 or start_ticks(held.pid) != held.start_ticks:
            self._reap()
            return
        holder.pids.add(held.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)

    @property
    def running(self) -> bool:
        return not self._ended.done()

    async def ended(self) -> None:
        """Return when the program has ended."""
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
        """Kill it for its memory use; `complaint` is the reason, as a part of a sentence."""
        if self.running:
            self._complaint = complaint
            self._signal(signal.SIGKILL)

    @property
    def ended_for_memory(self) -> bool:
        """Return whether it was killed for its memory use."""
        return bool(self._complaint)

    def forget(self) -> None:
        """Remove its record: it ended as intended."""
        self._holder.forget(self.program.name)
        self._files.remove(self.program.record)

    @property
    def exit_code(self) -> int:
        """Return how it ended, 128 + N for signal N; only after its end."""
        code = -signal.SIGKILL if self.ended_for_memory else self._returncode
        return code if code >= 0 else 128 - code

    def said(self) -> str:
        """Return the end of its output since its start, at most `MAX_LOG_BYTES`."""
        with self.program.log.open("rb") as log:
            log.seek(max(self._log_start, os.fstat(log.fileno()).st_size - MAX_LOG_BYTES))
            return log.read().decode(errors="replace")

    def _epitaph(self) -> str:
        if self._complaint:
            return self._complaint
        code = self._returncode
        how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        last = self._last_line() if -code not in (signal.SIGKILL, signal.SIGTERM) else ""
        return f"{how} after {self._lasted_s:.1f} s" + (f": {last}" if last else "")

    def _last_line(self) -> str:
        lines = self.said().splitlines()
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return last if len(last) <= _MAX_LAST_LINE else last[: _MAX_LAST_LINE - 3] + "..."

    @property
    def _returncode(self) -> int:
        return -signal.SIGKILL if self._status is None else self._status

    def _reap(self) -> None:
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._status = self._holder.status(self.program.name)  # after it has ended what the program left running
        self._holder.pids.discard(self.pid)
        if self.program.group is not None:
            self._complaint = self._complaint or killed_by_kernel(self.program.group.usage())
            self.program.group.remove()
        self._lasted_s = time.time() - self.started_at
        self._ended.set_result(None)

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            self._holder.signal(self.program.name, number)


def _started(holder: Holder, program: Program, restarts: int, message: str) -> tuple[Note, Held]:
    program.log.parent.mkdir(parents=True, exist_ok=True)
    _rotate(program.log)
    started = _command(program, holder)
    group = None if program.group is None else (program.group.folder.name, program.group.limit_bytes)
    with program.log.open("ab") as log:
        note = Note(
            str(program.log), str(program.record), time.time(), log.tell(), restarts, message, group, program.about
        )
        descriptors = [log.fileno(), *program.left_open]
        return note, holder.start(program.name, started, program.env, descriptors, asdict(note))


def _record(held: Held, restarts: int, message: str) -> dict[str, Any]:
    return asdict(ProcessRecord(held.pid, held.start_ticks, restarts, message, AGENT))


def _command(program: Program, holder: Holder) -> list[str]:
    """Return the command for the holder: the program itself, or a launcher that confines it first."""
    if program.sandbox is None and program.group is None and program.folder is None and not program.limits:
        return list(program.command)
    return command(
        program.command,
        sandbox=program.sandbox,
        limits=program.limits,
        folder="" if program.folder is None else str(program.folder),
        group="" if program.group is None else program.group.entry,
        parent=holder.pid,
    )


def _rotate(log: Path) -> None:
    """Keep one older log; a program that is started again and again must not fill the disk."""
    with suppress(FileNotFoundError):
        if log.stat().st_size > _MAX_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
