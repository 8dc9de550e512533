"""Thread of one model instance."""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from serving_runtime.scheduler.execution.execution import Execution, execute
from serving_runtime.scheduler.execution.loop_wakeup import LoopWakeup
from serving_runtime.scheduler.job import Job

Execute: TypeAlias = Callable[[Any, Sequence[Job]], list[Execution]]
"""Runs jobs by the run function of a model; never raises."""


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
            wakeup.wake()
        wakeup.close()

    def _pass_on(self) -> None:
        # Not at once: responses that a model sent while it ran are in the loop's queue, and come before its end.
        while self._executed:
            self._loop.call_soon(self._on_done, self, self._executed.popleft())
