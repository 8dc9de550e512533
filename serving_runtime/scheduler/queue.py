"""Priority queue of one model version: by priority level, oldest first.

A job that is cancelled or expires while it waits stays in its deque as an empty shell until it reaches the front;
removing it from the middle would cost the length of the queue. No deque begins with one.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain
from operator import attrgetter

from serving_runtime.common.errors import Unavailable
from serving_runtime.config.batching import QueuePolicy
from serving_runtime.scheduler.job import Job

_is_waiting = attrgetter("waiting")

NO_POLICY: Mapping[int, QueuePolicy] = {0: QueuePolicy()}


class _Level:
    """One priority: those in time, and those whose time ran out under the DELAY action."""

    __slots__ = ("delayed", "policy", "punctual", "size")

    def __init__(self, policy: QueuePolicy) -> None:
        self.policy = policy
        self.punctual: deque[Job] = deque()
        self.delayed: deque[Job] = deque()
        self.size = 0


class JobQueue:
    """Waiting jobs: `len()` counts them, and a loop has them in the order in which they are to run."""

    def __init__(self, policies: Mapping[int, QueuePolicy] = NO_POLICY) -> None:
        self._levels = {level: _Level(policies[level]) for level in sorted(policies)}
        self._lines = [(level, line) for level in self._levels.values() for line in (level.punctual, level.delayed)]
        self._in_order = [line for _, line in self._lines]
        self._size = self._empty = 0

    def __len__(self) -> int:
        return self._size

    def policy(self, job: Job) -> QueuePolicy:
        return self._levels[job.priority].policy

    def push(self, job: Job) -> None:
        """Append a job to its level; raises Unavailable when the level is full."""
        level = self._levels[job.priority]
        if level.policy.max_queue_size and level.size >= level.policy.max_queue_size:
            raise Unavailable(f"Exceeds maximum queue size of {level.policy.max_queue_size} waiting requests")
        level.punctual.append(job)
        level.size += 1
        self._size += 1
        job.waiting = True

    def discard(self, job: Job) -> None:
        """Remove a waiting job and release its memory."""
        level = self._levels[job.priority]
        job.waiting = False
        job.arrays = ()
        level.size -= 1
        self._size -= 1
        self._empty += 1
        self._drop_empty(level.punctual)
        self._drop_empty(level.delayed)

    def delay(self, job: Job) -> None:
        """Move a waiting job behind all punctual ones of its level."""
        level = self._levels[job.priority]
        level.punctual.remove(job)
        self._drop_empty(level.punctual)
        level.delayed.append(job)

    def __iter__(self) -> Iterator[Job]:
        """Return the waiting jobs in the order in which they are to run."""
        jobs = chain.from_iterable(self._in_order)
        return filter(_is_waiting, jobs) if self._empty else jobs

    def pop(self, count: int) -> list[Job]:
        """Take out the first `count` waiting jobs."""
        jobs: list[Job] = []
        for level, line in self._lines:
            if not line:
                continue
            left = min(count - len(jobs), len(line))
            taken = self._pop_waiting(line, left) if self._empty else [line.popleft() for _ in range(left)]
            level.size -= len(taken)
            jobs += taken
            if len(jobs) == count:
                break
        self._size -= len(jobs)
        for job in jobs:
            job.waiting = False
        return jobs

    def _pop_waiting(self, line: deque[Job], count: int) -> list[Job]:
        """Take out the first `count` waiting jobs of a line, and the empty shells before and behind them."""
        jobs: list[Job] = []
        while line and len(jobs) < count:
            jobs.append(line.popleft())
            self._drop_empty(line)
        return jobs

    def _drop_empty(self, line: deque[Job]) -> None:
        """Drop the empty shells at the front."""
        while line and not line[0].waiting:
            line.popleft()
            self._empty -= 1
