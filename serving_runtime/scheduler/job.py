"""Job: one checked request on its way through a queue."""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeAlias

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ServingError
from serving_runtime.telemetry.statistics import BatchTiming

Result: TypeAlias = list[Array] | ServingError
OnResult: TypeAlias = Callable[[Result], None]


class Owner(Protocol):
    """Holder of a job that can cancel it."""

    def cancel(self, job: "Job") -> None: ...


class Job:
    """Arrays in the model's order, and what to call with the outputs.

    Attributes:
        rows: length of the batch dimension; 1 for models that have none.
        shape_key: equal for jobs that may be joined.
        caller: who shares the queue with others (see fair_queue).
        priority: the level of the queue it waits in; 0 without levels.
        timeout_us: the longest wait that the client requested; 0 without one.
        follow: called with `arrived_ns` and the timing of its execution, where the request is traced.
        waiting: in a queue, neither running nor answered nor cancelled.
    """

    __slots__ = (
        "arrays", "arrived_ns", "caller", "follow", "on_result", "owner", "priority", "rows", "shape_key", "timeout_us",
        "timer", "waiting",
    )  # fmt: skip

    decoupled = False
    """Whether `on_result` may be called more than once."""

    def __init__(
        self,
        arrays: Sequence[Array],
        rows: int,
        shape_key: Hashable,
        on_result: OnResult,
        arrived_ns: int,
    ) -> None:
        self.arrays = arrays
        self.rows = rows
        self.shape_key = shape_key
        self.on_result = on_result
        self.arrived_ns = arrived_ns
        self.caller = b""
        self.follow: Callable[[int, BatchTiming], None] | None = None
        self.priority = 0
        self.timeout_us = 0
        self.timer: asyncio.TimerHandle | None = None
        self.owner: Owner | None = None
        self.waiting = False

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def pause(self) -> None:
        """Hold further results of a decoupled model back: the client does not read those already sent."""

    def resume(self) -> None:
        """Let the model go on after `pause`."""

    def cancel(self) -> None:
        """Take the job out of its queue, or drop its result if it already runs. No callback is called."""
        self.on_result = _drop
        if self.waiting and self.owner is not None:
            self.owner.cancel(self)


def _drop(_result: Any) -> None:
    """Replace the callback of a client that has gone."""
