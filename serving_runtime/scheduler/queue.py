"""Priority queue of one model version: by priority level, then in turns between callers, each one's oldest first."""

from collections.abc import Iterator, Mapping
from itertools import chain
from operator import attrgetter

from serving_runtime.common.errors import Overloaded
from serving_runtime.config.batching import QueuePolicy
from serving_runtime.scheduler.fair_queue import FairQueue
from serving_runtime.scheduler.job import Job

NO_POLICY: Mapping[int, QueuePolicy] = {0: QueuePolicy()}


class _Level:
    """One priority: those in time, and those whose time ran out under the DELAY action.

    Attributes:
        late: those that wait in `delayed`.
        most: limit of waiting jobs, 0 for none.
    """

    __slots__ = ("delayed", "late", "most", "policy", "punctual", "size")

    def __init__(self, policy: QueuePolicy) -> None:
        self.policy = policy
        self.most = policy.max_queue_size
        self.punctual: FairQueue[Job] = FairQueue()
        self.delayed: FairQueue[Job] = FairQueue()
        self.late: set[Job] = set()
        self.size = 0


class JobQueue:
    """Waiting jobs: `len()` counts them, and a loop has them in the order in which they are to run."""

    def __init__(self, policies: Mapping[int, QueuePolicy] = NO_POLICY) -> None:
        self._levels = {level: _Level(policies[level]) for level in sorted(policies)}
        self._by_priority = tuple(self._levels.values())
        self._lines = [line for level in self._by_priority for line in (level.punctual, level.delayed)]
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def policy(self, job: Job) -> QueuePolicy:
        return self._levels[job.priority].policy

    def push(self, job: Job) -> Job | None:
        """Append a job to its level; return the job that leaves a full level for it, None for none.

        Raises Overloaded when the level is full and no other caller has more jobs in it.
        """
        level = self._levels[job.priority]
        displaced = None
        if level.most and level.size >= level.most:
            displaced = self._make_room(level, job.caller)
        level.punctual.push(job)
        level.size += 1
        self._size += 1
        job.waiting = True
        return displaced

    def _make_room(self, level: _Level, caller: bytes) -> Job:
        """Take out the newest job of the caller with the most."""
        line = max(level.punctual, level.delayed, key=attrgetter("longest"))
        if line.longest <= level.punctual.size_of(caller) + level.delayed.size_of(caller) + 1:
            raise Overloaded(f"Exceeds maximum queue size of {level.most} waiting requests")
        job = line.pop_newest()
        level.late.discard(job)
        level.size -= 1
        self._size -= 1
        job.waiting = False
        job.arrays = ()
        return job

    def discard(self, job: Job) -> None:
        """Remove a waiting job and release its memory."""
        level = self._levels[job.priority]
        line = level.punctual
        if job in level.late:
            line = level.delayed
            level.late.remove(job)
        line.discard(job)
        job.arrays = ()
        level.size -= 1
        self._size -= 1

    def delay(self, job: Job) -> None:
        """Move a waiting job behind all punctual ones of its level."""
        level = self._levels[job.priority]
        level.punctual.remove(job)
        level.delayed.push(job)
        level.late.add(job)

    def __iter__(self) -> Iterator[Job]:
        """Return the waiting jobs in the order in which they are to run."""
        return chain.from_iterable(self._lines)

    def pop(self, count: int) -> list[Job]:
        """Take out the first `count` waiting jobs."""
        jobs: list[Job] = []
        for level in self._by_priority:
            if not level.size:
                continue
            taken = level.punctual.pop(count - len(jobs))
            if level.late and len(jobs) + len(taken) < count:
                delayed = level.delayed.pop(count - len(jobs) - len(taken))
                level.late.difference_update(delayed)
                taken += delayed
            level.size -= len(taken)
            jobs = jobs + taken if jobs else taken
            if len(jobs) == count:
                break
        self._size -= len(jobs)
        for job in jobs:
            job.waiting = False
        return jobs
