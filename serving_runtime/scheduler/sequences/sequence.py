"""Sequences, their requests, and the slots of an instance."""

import asyncio
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from serving_runtime.common.datatypes import Array
from serving_runtime.scheduler.job import Job, OnResult

if TYPE_CHECKING:
    from serving_runtime.scheduler.execution.instance import Instance

CorrelationId: TypeAlias = int | str


class SequenceJob(Job):
    """One request of a sequence; always one row.

    Attributes:
        correlation_id: 0 or "" where the client gave none.
        start, end: whether it is the sequence's first request, and its last.
        sequence: set by the scheduler.
        null: a filler for an empty row of a batch, not a request.
    """

    __slots__ = ("correlation_id", "end", "null", "sequence", "start")

    def __init__(
        self, arrays: Sequence[Array], rows: int, shape_key: Hashable, on_result: OnResult, arrived_ns: int
    ) -> None:
        super().__init__(arrays, rows, shape_key, on_result, arrived_ns)
        self.correlation_id: CorrelationId = 0
        self.start = False
        self.end = False
        self.null = False
        self.sequence: LiveSequence | None = None


class LiveSequence:
    """One sequence from the request with START to the answer of the one with END, or until its idle timeout.

    Attributes:
        jobs: its waiting requests, in order; at most one more runs.
        lane: the lane of its slot; None in the backlog.
        state: what the model left for the next request; None before the first answer.
        ended: no request follows the waiting ones.
        used_ns: when its last request arrived or was answered.
        tag: its correlation id in the type of the model's control input; None without such an input.
        initial_key, state_key: equal for sequences whose first, or next, states may be joined.
    """

    __slots__ = (
        "correlation_id", "ended", "initial_key", "jobs", "lane", "running", "slot", "state", "state_key", "tag",
        "used_ns",
    )  # fmt: skip

    def __init__(self, correlation_id: CorrelationId, tag: Array | None = None, initial_key: Hashable = None) -> None:
        self.correlation_id = correlation_id
        self.tag = tag
        self.initial_key = initial_key
        self.state_key = initial_key
        self.jobs: deque[SequenceJob] = deque()
        self.lane: Lane | None = None
        self.slot = -1
        self.state: Sequence[Array] | None = None
        self.running = False
        self.ended = False
        self.used_ns = 0

    @property
    def ready(self) -> bool:
        return bool(self.jobs) and not self.running

    @property
    def key(self) -> Hashable:
        """Return a key that is equal for sequences whose next requests may be joined."""
        job = self.jobs[0]
        return job.shape_key, self.initial_key if job.start else self.state_key

    @property
    def idle(self) -> bool:
        return not self.jobs and not self.running


class Lane:
    """One instance and the sequences that only it runs.

    Attributes:
        slots: their number.
        free: the slots without a sequence, a heap.
        ready: the sequences with a slot whose next request can run; a dictionary as an ordered set.
    """

    __slots__ = ("busy", "free", "instance", "number", "ready", "slots", "timer", "woken")

    def __init__(self, number: int, slots: int, instance: "Instance") -> None:
        self.number = number
        self.slots = slots
        self.free = list(range(slots))
        self.ready: dict[LiveSequence, None] = {}
        self.instance = instance
        self.busy = False
        self.woken = False
        self.timer: asyncio.TimerHandle | None = None

    def note(self, sequence: LiveSequence) -> None:
        """Update whether a sequence with a slot here can run."""
        if sequence.ready:
            self.ready[sequence] = None
        else:
            self.ready.pop(sequence, None)


def next_free(lanes: Iterable[Lane]) -> Lane | None:
    """Return the instance with the lowest free slot of all, so that new sequences share the load."""
    free = [lane for lane in lanes if lane.free]
    return min(free, key=lambda lane: (lane.free[0], lane.number)) if free else None


def sort_idle(
    sequences: Iterable[LiveSequence], now_ns: int, max_idle_ns: int
) -> tuple[list[LiveSequence], int | None]:
    """Return the sequences beyond their idle timeout, and when the next one will be; None where none can."""
    expired, next_ns = [], None
    for sequence in sequences:
        due_ns = max(sequence.used_ns, 0 if sequence.idle else now_ns) + max_idle_ns
        if due_ns <= now_ns:
            expired.append(sequence)
        elif next_ns is None or due_ns < next_ns:
            next_ns = due_ns
    return expired, next_ns
