"""Bulkhead thread pool of the worker: long tasks have threads of their own, which sweeps never wait for.

A task with the annotation `threads` runs on that many threads of its kind. All others, sweeps and ticks, share the
`--concurrency` threads of the worker. A hint for a kind whose threads are busy waits in memory, already acknowledged,
so that it takes none of the messages that the worker may hold; beyond a few it is dropped, and a later sweep sends
another (decision 0003).
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from celery import concurrency
from celery.concurrency import thread
from celery.concurrency.base import apply_target
from prometheus_client import Counter

DROPPED = Counter(
    "fairlead_tasks_dropped_total",
    "Hints dropped since all threads of their kind were busy; sweeps repeat them.",
    ["task"],
)
_WAITING_PER_THREAD = 4


class Lane:
    """The threads of one kind of tasks, and the few hints that wait for them."""

    def __init__(self, task: str, threads: int) -> None:
        self._executor = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=task)
        self._most = threads * (1 + _WAITING_PER_THREAD)
        self._held: set[Future[None]] = set()

    def submit(self, call: Callable[..., None], *args: object) -> "Future[None] | None":
        """Run the call soon, and return its future; None where too many wait. Only the worker's main thread calls."""
        self._held = {future for future in self._held if not future.done()}
        if len(self._held) >= self._most:
            return None
        future = self._executor.submit(call, *args)
        self._held.add(future)
        return future

    def stop(self, *, wait: bool) -> None:
        """Drop the calls that wait, and where `wait` return once the running ones have ended."""
        self._executor.shutdown(wait=wait, cancel_futures=True)


class TaskPool(thread.TaskPool):
    """Celery's pool of threads, with a lane for each kind of tasks that has threads of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lanes: dict[str, Lane] = {}

    def on_stop(self) -> None:
        """Wait for the running tasks of every kind; drop those that wait."""
        for wait in (False, True):
            for lane in self._lanes.values():
                lane.stop(wait=wait)
        super().on_stop()

    def on_apply(
        self,
        target: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        callback: Callable[..., Any] | None = None,
        accept_callback: Callable[..., Any] | None = None,
        **options: Any,
    ) -> Any:
        """Run a task on the threads of its kind."""
        name = str(args[0]) if args else ""
        lane = self._lane_of(name)
        if lane is None:
            return super().on_apply(target, args, kwargs, callback, accept_callback, **options)
        if accept_callback is not None:
            accept_callback(os.getpid(), time.monotonic())
        future = lane.submit(apply_target, target, args, kwargs, callback)
        if future is not None:
            return future
        DROPPED.labels(name).inc()
        if callback is not None:
            callback((0, None, 0.0))  # not failed, no result, no time: Celery forgets the request
        return None

    def _lane_of(self, name: str) -> Lane | None:
        if name not in self._lanes:
            threads = getattr(self.app.tasks.get(name), "threads", None)
            if threads is None:
                return None
            self._lanes[name] = Lane(name, threads)
        return self._lanes[name]


def use() -> None:
    """Register this pool for `--pool threads` in this process."""
    concurrency.ALIASES["threads"] = f"{__name__}:{TaskPool.__name__}"  # type: ignore[attr-defined]
