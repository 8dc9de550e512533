"""Process supervisor: starts child processes, restarts them with exponential back-off, ends all in order.

    waiting until it is wanted ──> launched
    launched ──ended──> down (pause: 0.5 s, doubled each time, at most 30 s) ──> launched
        └── ran for a minute: the next pause is the shortest again
    stop: one after the other, SIGTERM, its own patience, then SIGKILL of the whole group

One thread, no callbacks: the owner calls `tick` when a signal or `next_wake_s` says so. Each child leads its own
session, so that Ctrl-C in the terminal reaches only the owner, who then decides.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from fairlead_cli.up import processes, records
from fairlead_cli.up.home import Home

_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _STEADY_S = 0.5, 30.0, 60.0
_HURRIED_PATIENCE_S = 2.0
_ROOM_S = 1.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Component:
    """One component to keep running.

    Attributes:
        patience_s: how long it may take to end by itself.
        starts_others: it starts recorded processes, which are not adopted: they are ended before its restart.
        inherits: a descriptor of this process that it gets; None for its output only.
        ends_with: a descriptor of this process that is closed to end it.
        wanted_by: a file without which it is not started; None starts it from the beginning.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    patience_s: float
    starts_others: bool = False
    inherits: int | None = None
    ends_with: int | None = None
    wanted_by: Path | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether it should run now."""
        return self.wanted_by is None or self.wanted_by.exists()


@dataclass(slots=True)
class Child:
    """A component with its process, while it has one."""

    component: Component
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    failures_in_row: int = 0
    launched_at: float = 0.0
    launch_at: float = 0.0
    last_end: str = ""


def pause_s(failures_in_row: int) -> float:
    """Return the back-off before the next start after so many consecutive short runs (at least 1)."""
    return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(failures_in_row - 1, 10))


def how_it_ended(returncode: int) -> str:
    """Return a process's end in words."""
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-returncode).name}"
    return f"was ended by signal {-returncode}"


@dataclass(slots=True)
class Supervisor:
    """Runs `components` for `home`.

    Attributes:
        say: receives one sentence per notable event.
        adopts: this process is the parent of its descendants' orphans (`processes.adopt_orphans`) and has no other
            children: the rest of them ends with `stop`.
    """

    home: Home
    components: Sequence[Component]
    say: Callable[[str], None]
    adopts: bool = False
    children: list[Child] = field(init=False)
    _records: records.Records = field(init=False)

    def __post_init__(self) -> None:
        self.children = [Child(component) for component in self.components]
        self._records = records.Records(self.home, self.say)

    def start(self) -> None:
        """Start every component that should run."""
        for child in self.children:
            if child.component.is_wanted:
                self._launch(child)

    def tick(self) -> None:
        """Reap ended components and start those that are due, or newly wanted."""
        self._records.write_waiting()
        for child in self.children:
            if child.process is not None and child.process.poll() is not None:
                self._ended(child)
            if child.process is None and child.component.is_wanted and time.monotonic() >= child.launch_at:
                self._launch(child)
        for seen in self._adopted():
            if not seen.alive:
                _reap(seen.pid)

    def next_wake_s(self, longest: float) -> float:
        """Return the seconds until `tick` has work, at most `longest`."""
        longest = min(longest, _ROOM_S) if self._records.wait else longest
        down = (child for child in self.children if child.process is None and child.component.is_wanted)
        due = [child.launch_at - time.monotonic() for child in down]
        return max(0.0, min([longest, *due]))

    def stop(self, hurry: Callable[[], bool]) -> None:
        """End everything in the order of `components`; once `hurry` says so, without much patience.

        Returns when no process of the family is left.
        """
        for child in self.children:
            if child.process is not None:
                self._stop_one(child, hurry)
            child.process = None
            self._records.remove(child.component.name)
        records.end_leftovers(self.home, patience_s=_HURRIED_PATIENCE_S)
        self._end_adopted()

    def _launch(self, child: Child) -> None:
        component = child.component
        with self._log(component.name) as log:
            child.process = subprocess.Popen(
                component.command,
                env=dict(component.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[] if component.inherits is None else [component.inherits],
                preexec_fn=processes.ends_with_parent(),  # noqa: PLW1509 - this process has one thread
            )
        child.launched_at = time.monotonic()
        seen = processes.stat(child.process.pid)
        message = f"its last process {child.last_end}" if child.last_end else ""
        ticks = seen.start_ticks if seen else None
        self._records.write(component.name, records.Record(child.process.pid, ticks, child.restarts, message))

    def _log(self, name: str) -> BinaryIO:
        """Open a component's log; without room for a new file it runs without one."""
        path = self.home.logs / f"{name}.log"
        try:
            return path.open("ab")
        except OSError as error:
            self.say(f"{path} cannot be opened ({error.strerror}); what {name} says is lost until it is started again")
            return Path(os.devnull).open("ab")

    def _ended(self, child: Child) -> None:
        assert child.process is not None  # noqa: S101 - the caller looked
        component, returncode = child.component, child.process.returncode
        # Leftovers in its group would hold ports and files that its successor needs.
        processes.end_groups([child.process.pid], patience_s=0)
        if component.starts_others:
            own = frozenset(other.component.name for other in self.children)
            records.end_leftovers(self.home, spare=own)
        steady = time.monotonic() - child.launched_at >= _STEADY_S
        child.failures_in_row = 1 if steady else child.failures_in_row + 1
        child.restarts += 1
        child.last_end = how_it_ended(returncode)
        wait_s = pause_s(child.failures_in_row)
        child.process, child.launch_at = None, time.monotonic() + wait_s
        self._records.write(component.name, records.Record(None, None, child.restarts, f"it {child.last_end}"))
        self.say(
            f"{component.name} {child.last_end}; starting it again in {wait_s:g} s (restart {child.restarts}); "
            f"see {self.home.logs / component.name}.log"
        )

    def _stop_one(self, child: Child, hurry: Callable[[], bool]) -> None:
        assert child.process is not None  # noqa: S101 - the caller looked
        if child.component.ends_with is not None:
            os.close(child.component.ends_with)
        if child.process.poll() is None:
            processes.signal_group(child.process.pid, signal.SIGTERM)
        now = time.monotonic()
        deadline, hurried = now + child.component.patience_s, False
        while child.process.poll() is None and time.monotonic() < deadline:
            if not hurried and hurry():
                hurried = True
                deadline = min(deadline, time.monotonic() + _HURRIED_PATIENCE_S)
            time.sleep(_POLL_S)
        if child.process.poll() is None:
            self.say(f"{child.component.name} did not end in time and is killed")
        processes.end_groups([child.process.pid], patience_s=0)
        child.process.wait()

    def _adopted(self) -> list[processes.ProcessStat]:
        if not self.adopts:
            return []
        own = {child.process.pid for child in self.children if child.process is not None}
        me = os.getpid()
        return [seen for seen in processes.everyone() if seen.parent == me and seen.pid not in own]

    def _end_adopted(self) -> None:
        while adopted := self._adopted():
            for seen in adopted:
                with suppress(ProcessLookupError):
                    os.kill(seen.pid, signal.SIGKILL)
                _reap(seen.pid, wait=True)


def _reap(pid: int, *, wait: bool = False) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, 0 if wait else os.WNOHANG)
