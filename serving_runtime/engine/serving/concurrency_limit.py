"""Concurrency limiter: bounds the requests that are with the models; excess requests queue, in turns between callers.

The engine calls it for all its models together, for HTTP and gRPC alike (Knative: containerConcurrency is a hard
limit of the container, behind a queue of ten times as many). Waiting requests count as in flight in metrics and
while draining; their time in this queue is in no model's queue time.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TypeAlias

from serving_runtime.common.errors import FailureReason, Overloaded, ServingError
from serving_runtime.common.request import InferRequest, OnDone, Outcome, Streaming
from serving_runtime.scheduler import counting
from serving_runtime.scheduler.fair_queue import FairQueue
from serving_runtime.telemetry.statistics import ModelStatistics

WAITING_PER_PLACE = 10


Start: TypeAlias = Callable[[InferRequest, OnDone], Streaming]


class ConcurrencyLimit:
    """Admits at most `limit` requests to the models.

    Args:
        in_flight: returns how many requests all models have accepted and not answered, waiting ones included.
    """

    def __init__(self, limit: int, in_flight: Callable[[], int]) -> None:
        self._limit = limit
        self._in_flight = in_flight
        self._queue: FairQueue[WaitingRequest] = FairQueue()
        self._waiting = 0
        self._calling = False

    def infer(
        self,
        start: Start,
        statistics: ModelStatistics,
        request: InferRequest,
        on_done: OnDone,
        *,
        decoupled: bool = False,
    ) -> Streaming:
        """Start the request now or when there is room; raises Overloaded when too many wait already.

        The newest one of another caller who has more of them leaves instead.

        Args:
            decoupled: whether there may be more answers than one.
        """
        statistics.on_finished = self._freed
        if self._has_room:
            return start(request, on_done)
        if self._waiting >= self._limit * WAITING_PER_PLACE:
            self._make_room(statistics, request.caller)
        counting.wait(statistics)
        waiting = WaitingRequest(self, start, statistics, request, on_done)
        waiting.decoupled = decoupled
        self._queue.push(waiting)
        self._waiting += 1
        return waiting

    @property
    def _has_room(self) -> bool:
        return not self._waiting and self._in_flight() < self._limit

    def _make_room(self, statistics: ModelStatistics, caller: bytes) -> None:
        """Displace the newest request of the caller with the most; raises Overloaded where none has more than this."""
        if self._queue.longest <= self._queue.size_of(caller) + 1:
            counting.refuse(statistics, FailureReason.REJECTED)
            raise Overloaded(self._full(""))
        displaced = self._queue.pop_newest()
        self._waiting -= 1
        displaced.refuse(Overloaded(self._full(", of which this caller has the most")))

    def _full(self, whose: str) -> str:
        return (
            f"{self._limit} requests are being answered, as many as --max-concurrent-requests allows, and "
            f"{self._limit * WAITING_PER_PLACE} wait for them{whose}; try again soon"
        )

    def forget(self, waiting: "WaitingRequest") -> None:
        """Remove a waiting request."""
        self._queue.discard(waiting)
        self._waiting -= 1

    def _freed(self) -> None:
        # Not from here: a model is in the middle of answering.
        if self._waiting and not self._calling:
            self._calling = True
            asyncio.get_running_loop().call_soon(self._call)

    def _call(self) -> None:
        self._calling = False
        while self._waiting and self._in_flight() - self._waiting < self._limit:
            (waiting,) = self._queue.pop(1)
            self._waiting -= 1
            waiting.enter()


class WaitingRequest:
    """A waiting request, and its job once it is admitted.

    Attributes:
        caller, waiting, rows: of an item of a FairQueue. Its rows are not known before it is checked.
        decoupled: whether there may be more answers than one.
    """

    decoupled = False
    rows = 1

    def __init__(
        self, limit: ConcurrencyLimit, start: Start, statistics: ModelStatistics, request: InferRequest, on_done: OnDone
    ) -> None:
        self.caller = request.caller
        self.waiting = True
        self._owner: ConcurrencyLimit | None = limit
        self._start = start
        self._statistics = statistics
        self._request = request
        self._on_done = on_done
        self._job: Streaming | None = None
        self._arrived_ns = time.monotonic_ns()

    def enter(self) -> None:
        """Start the request; its callback receives an error like any other outcome."""
        self._owner = None
        counting.end_wait(self._statistics)
        try:
            self._job = self._start(self._request, self._on_done)
        except ServingError as error:
            self._on_done(error)

    def refuse(self, error: Overloaded) -> None:
        """End the request, displaced by another caller's; its callback is called in the loop's next pass."""
        self._owner = None
        counting.displace(self._statistics, self._arrived_ns)
        asyncio.get_running_loop().call_soon(lambda: self._on_done(error))  # unless it is cancelled before

    def pause(self) -> None:
        if self._job is not None:
            self._job.pause()

    def resume(self) -> None:
        if self._job is not None:
            self._job.resume()

    def cancel(self) -> None:
        """Cancel the request, waiting or running."""
        self._on_done = _drop
        if self._job is not None:
            self._job.cancel()
        elif self._owner is not None:
            self._owner.forget(self)
            self._owner = None
            del self._request, self._start  # the queue keeps a shell until its turn
            counting.fail(self._statistics, FailureReason.CANCELED, self._arrived_ns)


def _drop(_outcome: Outcome) -> None:
    """Replace the callback of a client that has gone."""
