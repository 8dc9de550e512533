"""Concurrency limiter: bounds the requests that are with the models; excess requests queue in FIFO order.

The engine calls it for all its models together, for HTTP and gRPC alike (Knative: containerConcurrency is a hard
limit of the container, behind a queue of ten times as many). Waiting requests count as in flight in metrics and
while draining; their time in this queue is in no model's queue time.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from serving_runtime.common.errors import FailureReason, ServingError, Unavailable
from serving_runtime.common.request import InferRequest, OnDone, Streaming
from serving_runtime.scheduler import counting
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
        self._waiting: deque[WaitingRequest] = deque()
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
        """Start the request now or when there is room; raises Unavailable when too many wait already.

        Args:
            decoupled: whether there may be more answers than one.
        """
        statistics.on_finished = self._freed
        if self._has_room:
            return start(request, on_done)
        if len(self._waiting) >= self._limit * WAITING_PER_PLACE:
            raise self._refusal(statistics)
        counting.wait(statistics)
        waiting = WaitingRequest(self, start, statistics, request, on_done)
        waiting.decoupled = decoupled
        self._waiting.append(waiting)
        return waiting

    @property
    def _has_room(self) -> bool:
        return not self._waiting and self._in_flight() < self._limit

    def _refusal(self, statistics: ModelStatistics) -> Unavailable:
        counting.refuse(statistics, FailureReason.REJECTED)
        return Unavailable(
            f"{self._limit} requests are being answered, as many as --max-concurrent-requests allows, and "
            f"{len(self._waiting)} wait for them; try again soon"
        )

    def forget(self, waiting: "WaitingRequest") -> None:
        """Remove a waiting request."""
        self._waiting.remove(waiting)

    def _freed(self) -> None:
        # Not from here: a model is in the middle of answering.
        if self._waiting and not self._calling:
            self._calling = True
            asyncio.get_running_loop().call_soon(self._call)

    def _call(self) -> None:
        self._calling = False
        while self._waiting and self._in_flight() - len(self._waiting) < self._limit:
            self._waiting.popleft().enter()


class WaitingRequest:
    """A waiting request, and its job once it is admitted.

    Attributes:
        decoupled: whether there may be more answers than one.
    """

    decoupled = False

    def __init__(
        self, limit: ConcurrencyLimit, start: Start, statistics: ModelStatistics, request: InferRequest, on_done: OnDone
    ) -> None:
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

    def pause(self) -> None:
        if self._job is not None:
            self._job.pause()

    def resume(self) -> None:
        if self._job is not None:
            self._job.resume()

    def cancel(self) -> None:
        """Cancel the request, waiting or running."""
        if self._job is not None:
            self._job.cancel()
        elif self._owner is not None:
            self._owner.forget(self)
            self._owner = None
            counting.fail(self._statistics, FailureReason.CANCELED, self._arrived_ns)
