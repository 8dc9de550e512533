"""Child processes of a replica: started together, watched, and ended from the front to the back.

    start (predictor first) --> running --one ends--> `first_ending`
                                   `--> end: SIGTERM --(until the deadline)--> SIGKILL; the explainer first, then the
                                             transformer, then the predictor that both call

A child has a process group of its own: what it leaves running is killed with it. All die with this process (`guard`).
"""

import asyncio
import ctypes
import logging
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from serving_runtime.common.errors import ServingError
from serving_runtime.proxy.programs.guard import Guard
from serving_runtime.proxy.programs.plan import Child

logger = logging.getLogger(__name__)

_LEAST_GRACE_S = 0.4
"""Between SIGTERM and SIGKILL where the deadline is over: one that calls another may have used all of the time."""

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class CannotStart(ServingError):  # noqa: N818 - as those in errors.py
    """A program that cannot be started; the message says why."""


class Ending(NamedTuple):
    """How a child ended by itself.

    Attributes:
        status: its exit code, or -N for signal N.
    """

    name: str
    status: int

    @property
    def exit_code(self) -> int:
        """Return the exit code for this process: the child's, 128 + N for signal N, and 1 where the child's was 0."""
        return 128 - self.status if self.status < 0 else self.status or 1

    def __str__(self) -> str:
        how = f"by signal {-self.status}" if self.status < 0 else f"with exit code {self.status}"
        return f"the {self.name} ended {how}, and the replica ends with it; see its last lines above"


class _Running(NamedTuple):
    name: str
    process: asyncio.subprocess.Process


class Children:
    """The programs of one replica."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._running: list[_Running] = []

    async def start(self, children: Sequence[Child]) -> None:
        """Start them; raises CannotStart. Those that were started before are running then."""
        for child in children:
            process = await _started(child, self._guard)
            logger.info("started the %s as process %d", child.name, process.pid)
            self._running.append(_Running(child.name, process))

    async def first_ending(self) -> Ending:
        """Return how the first one ended, once it has."""
        waiting = {asyncio.ensure_future(process.wait()): name for name, process in self._running}
        try:
            ended, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
        found = min(ended, key=lambda each: each.result() == 0)  # of several, one that failed
        return Ending(waiting[found], found.result())

    async def end(self, deadline: float) -> None:
        """End all of them; returns once none is left.

        Args:
            deadline: when to kill them, by the loop's time.
        """
        loop = asyncio.get_running_loop()
        try:
            while self._running:
                name, process = self._running[-1]
                with suppress(ProcessLookupError):
                    process.terminate()
                try:
                    async with asyncio.timeout_at(max(deadline, loop.time() + _LEAST_GRACE_S)):
                        await process.wait()
                except TimeoutError:
                    logger.warning("the %s has not ended in time after SIGTERM; it is killed", name)
                _kill(process)
                await process.wait()
                self._guard.forget(process.pid)
                self._running.pop()
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill all of them, and all that they have started in their process groups, at once."""
        for _, process in self._running:
            _kill(process)


async def _started(child: Child, guard: Guard) -> "asyncio.subprocess.Process":
    """Return the process of a child; its group and its session are its own."""
    parent = os.getpid()

    def prepare() -> None:
        guard.watch(os.getpid())  # here and not by the parent: the program may kill it at once
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    try:
        if not os.path.isdir(child.folder):  # noqa: ASYNC240, PTH112 - of a local disk, before anything is served
            raise NotADirectoryError(0, "is not a folder")
        return await asyncio.create_subprocess_exec(
            *child.command,
            cwd=child.folder,
            env=dict(child.env),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=child.descriptors,
            start_new_session=True,
            preexec_fn=prepare,  # no other thread runs here
        )
    except NotADirectoryError as error:
        raise CannotStart(f"the {child.name} cannot be started: {child.folder} is not a folder") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotStart(f"the {child.name} cannot be started: {child.command[0]}: {reason}") from error


def _kill(process: "asyncio.subprocess.Process") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
