"""Concurrency limiter of the proxy: at most so many inference requests are with the container; others queue.

As the runtime's: ten times as many wait, in turns between callers, and the newest one of the caller with the most of
them leaves for another caller's.
"""

from typing import Protocol

from serving_runtime.common.errors import Overloaded
from serving_runtime.scheduler.fair_queue import FairQueue, Waiting

WAITING_PER_PLACE = 10


class Waiter(Waiting, Protocol):
    """A request that waits for a place."""

    def enter(self) -> None: ...
    def refuse(self, error: Overloaded) -> None:
        """End the request: another caller's waits in its stead."""
        ...


class Places:
    """The places of one container.

    Args:
        limit: number of places; 0 for no limit.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._queue: FairQueue[Waiter] = FairQueue()
        self.waiting = 0

    def take(self, waiter: Waiter) -> None:
        """Let a request enter, now or later; raises Overloaded where too many wait already."""
        if not self._limit or (self._taken < self._limit and not self.waiting):
            self._taken += 1
            waiter.enter()
            return
        if self.waiting >= self._limit * WAITING_PER_PLACE:
            if self._queue.longest <= self._queue.size_of(waiter.caller) + 1:
                raise Overloaded(self._full(""))
            displaced = self._queue.pop_newest()
            self.waiting -= 1
            displaced.refuse(Overloaded(self._full(", of which this caller has the most")))
        self._queue.push(waiter)
        self.waiting += 1

    def forget(self, waiter: Waiter) -> None:
        """Remove a request that waits no more."""
        self._queue.discard(waiter)
        self.waiting -= 1

    def leave(self) -> None:
        """Free the place of a request that has entered."""
        self._taken -= 1
        if self.waiting and self._taken < self._limit:
            (waiter,) = self._queue.pop(1)
            self.waiting -= 1
            self._taken += 1
            waiter.enter()

    def _full(self, whose: str) -> str:
        return (
            f"{self._limit} requests are being answered, as many as --max-concurrent-requests allows, and "
            f"{self._limit * WAITING_PER_PLACE} wait for them{whose}; try again soon"
        )
