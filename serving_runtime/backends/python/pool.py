"""Worker process pool of one model version: lends workers to requests, and restarts them with exponential back-off.

    running --ends--> starting --ready--> running
                       |    ^
                    fails   | after 1, 2, 4 ... 60 s
                       v    |
                      waiting

A process that ends is restarted at once; one that ends again within a minute waits first. Without a running worker,
requests wait for one that is starting, and are refused where all wait.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from serving_runtime.common.errors import ServingError, Unavailable

logger = logging.getLogger(__name__)

_STEADY_S = 60.0
_LONGEST_DELAY_S = 60.0


class Worker(Protocol):
    """A lent worker; `load` is its number of borrowers."""

    load: int

    @property
    def alive(self) -> bool: ...

    def stop(self) -> None: ...


W = TypeVar("W", bound=Worker)


def delay_s(failures: int) -> float:
    """Return the wait before a start, after so many consecutive failures: 0, 1, 2, 4 ... 60 s."""
    return 0.0 if failures <= 1 else min(2.0 ** min(failures - 2, 10), _LONGEST_DELAY_S)


class _Slot(Generic[W]):
    """The slot of one worker.

    Attributes:
        failures: consecutive early ends and failed starts.
        waiting: it has no worker, and waits before the next start.
    """

    def __init__(self) -> None:
        self.worker: W | None = None
        self.failures = 0
        self.since_s = 0.0
        self.waiting = False


class Pool(Generic[W]):
    """Workers of one model; thread-safe.

    Args:
        start: returns a ready worker, which calls the given function when it ends; raises ServingError.
        where: model and version in words.
        stop: makes starts that go on fail, at the close.
    """

    def __init__(
        self, start: Callable[[Callable[[W], None]], W], where: str, stop: Callable[[], None] = lambda: None
    ) -> None:
        self._start = start
        self._stop_starts = stop
        self._where = where
        self._changed = threading.Condition()
        self._slots: list[_Slot[W]] = []
        self._closed = threading.Event()
        self._restarts: set[threading.Thread] = set()

    def open(self, count: int) -> None:
        """Start so many workers; raises ServingError where one fails to start, and stops the others."""
        try:
            for _ in range(count):
                slot: _Slot[W] = _Slot()
                worker = self._start(self.ended)
                self._slots.append(slot)
                self._place(slot, worker)
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> list[W]:
        """Return the running workers."""
        return [slot.worker for slot in self._slots if slot.worker is not None]

    @property
    def problem(self) -> str:
        """Return why the model is unavailable, in words; empty while a worker runs."""
        return "" if self.workers else "its worker process has ended and is being started again"

    @contextmanager
    def lent(self) -> Iterator[W]:
        """Lend the least loaded worker; raises Unavailable where all have ended, and none is starting."""
        with self._changed:
            while not self.workers and not self._closed.is_set() and not all(slot.waiting for slot in self._slots):
                self._changed.wait()
            running = self.workers
            if not running:
                raise Unavailable(f"{self._where}: {self.problem}; try again in a few seconds")
            worker = min(running, key=lambda one: one.load)
            worker.load += 1
        try:
            yield worker
        finally:
            with self._changed:
                worker.load -= 1

    def ended(self, worker: W) -> None:
        """Start a replacement of an ended worker."""
        with self._changed:
            slot = next((slot for slot in self._slots if slot.worker is worker), None)
            if slot is None or self._closed.is_set():
                return
            slot.worker = None
            steady = time.monotonic() - slot.since_s > _STEADY_S
            slot.failures = 1 if steady else slot.failures + 1
            thread = threading.Thread(target=self._restart, args=(slot, worker), name="restart", daemon=True)
            self._restarts.add(thread)
            thread.start()

    def close(self) -> None:
        """Stop all workers; returns when their processes have ended."""
        self._closed.set()
        self._stop_starts()
        with self._changed:
            self._changed.notify_all()
            restarts = list(self._restarts)
        for thread in restarts:
            thread.join()
        threads = [threading.Thread(target=worker.stop) for worker in self.workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._slots.clear()

    def _place(self, slot: _Slot[W], worker: W) -> None:
        with self._changed:
            slot.worker = worker
            slot.since_s = time.monotonic()
            self._changed.notify_all()
        if not worker.alive:  # it ended before it had a slot
            self.ended(worker)

    def _restart(self, slot: _Slot[W], old: W) -> None:
        old.stop()
        while not self._closed.is_set():
            self._wait(slot)
            try:
                worker = self._start(self.ended)
            except ServingError as error:
                slot.failures += 1
                logger.error("%s: its worker process does not start again: %s", self._where, error)
                continue
            self._place(slot, worker)
            logger.warning("%s: its worker process was started again", self._where)
            break
        with self._changed:
            self._restarts.discard(threading.current_thread())

    def _wait(self, slot: _Slot[W]) -> None:
        """Wait before the next start, which may fail too."""
        with self._changed:
            slot.waiting = slot.failures > 1
            self._changed.notify_all()
        self._closed.wait(delay_s(slot.failures))
        with self._changed:
            slot.waiting = False
