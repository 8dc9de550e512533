"""Thread of one model instance, and how it wakes the event loop."""

import asyncio
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from serving_runtime.scheduler.execution.execution import Execution, execute
from serving_runtime.scheduler.job import Job

Execute: TypeAlias = Callable[[Any, Sequence[Job]], list[Execution]]
"""Runs jobs by the run function of a model; never raises."""


class LoopWakeup:
    """Wakes the event loop from a thread, without contention for the GIL. Made on the loop, closed from any thread.

    `call_soon_threadsafe` wakes the loop while the calling thread holds the GIL: on one core the loop's thread runs at
    once, finds the lock taken and sleeps again. A write to an eventfd releases the GIL during the system call.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_wake: Callable[[], None]) -> None:
        self._loop = loop
        self._on_wake = on_wake
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        loop.add_reader(self._fd, self._woken)

    def wake(self) -> None:
        """Schedule a call of `on_wake`; several wakes before it count as one."""
        os.eventfd_write(self._fd, 1)

    def close(self) -> None:
        """Wake no more; earlier wakes are still handled."""
        try:
            self._loop.call_soon_threadsafe(self._close)
        except RuntimeError:  # the loop has ended and handles nothing more
            os.close(self._fd)

    def _woken(self) -> None:
        os.eventfd_read(self._fd)
        self._on_wake()

    def _close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._on_wake()


class Instance:
    """Runs one batch at a time and passes the executions to the event loop.

    The thread starts with the first batch, so models that run in the loop have none.
    """

    def __init__(
        self,
        run: Any,
        loop: asyncio.AbstractEventLoop,
        on_done: Callable[["Instance", list[Execution]], None],
        name: str,
        *,
        execute: Execute = execute,
    ) -> None:
        self._run = run
        self._execute = execute
        self._loop = loop
        self._on_done = on_done
        self._name = name
        self._batches: queue.SimpleQueue[Sequence[Job] | None] = queue.SimpleQueue()
        self._executed: deque[list[Execution]] = deque()
        self._thread: threading.Thread | None = None

    def start(self, jobs: Sequence[Job]) -> None:
        """Run a batch; `on_done` is called on the event loop with its executions."""
        if self._thread is None:
            wakeup = LoopWakeup(self._loop, self._pass_on)
            self._thread = threading.Thread(target=self._work, args=(wakeup,), name=self._name, daemon=True)
            self._thread.start()
        self._batches.put(jobs)

    def close(self) -> None:
        """End the thread after the running batch."""
        if self._thread is not None:
            self._batches.put(None)

    def _work(self, wakeup: LoopWakeup) -> None:
        while (jobs := self._batches.get()) is not None:
            executions = self._execute(self._run, jobs)
            if self._loop.is_closed():  # the server has stopped waiting for this batch
                return
            self._executed.append(executions)
            del jobs, executions  # else the thread holds the tensors of a batch until the next one comes
            wakeup.wake()
        wakeup.close()

    def _pass_on(self) -> None:
        # Not at once: responses that a model sent while it ran are in the loop's queue, and come before its end.
        while self._executed:
            self._loop.call_soon(self._on_done, self, self._executed.popleft())
