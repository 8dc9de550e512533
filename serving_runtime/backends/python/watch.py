"""Watch over sandboxed workers: one thread of the server starts them, and ends those that exceed what limits count not.

The kernel ends a worker with the thread that started it, so that no worker outlives the server: this thread lives as
long as the process.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

LONGEST_RUN_S = 120.0
"""How long a worker may take for one batch of requests."""
MOST_THREADS = 128

_EVERY_S = 0.5


class Watched(Protocol):
    """A worker, as it is watched."""

    pid: int

    @property
    def alive(self) -> bool: ...

    @property
    def oldest(self) -> int | None:
        """Return the number of its oldest unanswered request."""

    def end(self, why: str) -> None:
        """Kill it; `why` is part of a sentence."""


class Watch:
    """The thread, and the workers that it watches."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._since: dict[Watched, tuple[int | None, float]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[[], T]) -> T:
        """Return a function's result from the thread, or raise its exception."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="worker-watch", daemon=True)
                self._thread.start()
        done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

        def order() -> None:
            try:
                done.put((function(), None))
            except BaseException as error:  # passed to the caller
                done.put((None, error))

        self._orders.put(order)
        result, error = done.get()
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def watch(self, worker: Watched) -> None:
        """Watch a worker until it ends."""
        self._orders.put(lambda: self._since.update({worker: (None, time.monotonic())}))

    def _work(self) -> None:
        looked_at = 0.0
        while True:
            with contextlib.suppress(queue.Empty):
                self._orders.get(timeout=_EVERY_S if self._since else None)()
            if time.monotonic() - looked_at >= _EVERY_S:
                looked_at = time.monotonic()
                for worker in list(self._since):
                    self._look(worker)

    def _look(self, worker: Watched) -> None:
        if not worker.alive:
            del self._since[worker]
            return
        now, oldest = time.monotonic(), worker.oldest
        before, since = self._since[worker]
        if oldest is None or oldest != before:
            self._since[worker] = oldest, now
        elif now - since > LONGEST_RUN_S:
            worker.end(f"was ended, since it took longer than {LONGEST_RUN_S:g} s for a request")
        if threads_of(worker.pid) > MOST_THREADS:
            worker.end(f"was ended, since it had more than {MOST_THREADS} threads")


def threads_of(pid: int) -> int:
    """Return how many threads a process has, 0 where it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[17])


WATCH = Watch()
"""The server's."""
