"""Request counting: the one place where requests become the numbers of statistics and metrics.

    admitted --+--> count (a batch, or its failures)
               +--> cache_hit
               +--> fail (refused by its queue, expired, cancelled)
               `--> displace (refused for another caller)
    refuse          never reached a queue: did not decode, names no such class, finds too many waiting

Each admitted request is counted once more, by one of the four. Servables, schedulers, the concurrency limiter and the
protocols call these functions; nothing else writes the counts of requests (tests/serving_runtime/scheduler).
"""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from serving_runtime.common.errors import FailureReason, ServingError
from serving_runtime.common.request import InferRequest, OnDone
from serving_runtime.scheduler.base import ModelScheduler
from serving_runtime.scheduler.execution.execution import Execution
from serving_runtime.scheduler.job import Job
from serving_runtime.telemetry.statistics import ModelStatistics

Made = TypeVar("Made", bound=Job)


def admitted(
    make: Callable[[InferRequest, OnDone, int], Made],
    request: InferRequest,
    on_done: OnDone,
    scheduler: ModelScheduler,
    statistics: ModelStatistics,
) -> Made:
    """Count a request as accepted, and return its job, submitted; one that is refused has failed.

    Args:
        make: returns the checked request's job; takes its time of arrival, in nanoseconds of the monotonic clock.

    Raises ServingError where `make` or the scheduler refuses the request.
    """
    arrived_ns = time.monotonic_ns()
    statistics.accepted += 1
    try:
        job = make(request, on_done, arrived_ns)
        scheduler.submit(job)
    except ServingError as error:
        statistics.record_failure(error.reason, time.monotonic_ns() - arrived_ns)
        raise
    return job


def refuse(statistics: ModelStatistics, reason: FailureReason) -> None:
    """Count a request that was refused before it was admitted, without a duration."""
    statistics.accepted += 1
    statistics.record_failure(reason, 0)


def wait(statistics: ModelStatistics) -> None:
    """Count a request that waits to be admitted as in flight."""
    statistics.accepted += 1


def end_wait(statistics: ModelStatistics) -> None:
    """Count it no more: it is admitted now."""
    statistics.accepted -= 1


def count(executions: Sequence[Execution], statistics: ModelStatistics) -> None:
    """Count the requests of executions, as answered or failed."""
    for execution in executions:
        jobs = execution.jobs
        if execution.timing is not None:
            rows = sum([job.rows for job in jobs])
            statistics.record_batch([job.arrived_ns for job in jobs], rows, execution.timing)
            continue
        now_ns = time.monotonic_ns()
        for job, error in zip(jobs, execution.results, strict=True):
            reason = error.reason if isinstance(error, ServingError) else FailureReason.OTHER
            statistics.record_failure(reason, now_ns - job.arrived_ns)


def cache_hit(job: Job, looked_up_ns: int, statistics: ModelStatistics) -> None:
    """Count a request that the response cache answers, and how long the lookup took."""
    statistics.record_cache_hit(looked_up_ns, time.monotonic_ns() - job.arrived_ns)


def fail(statistics: ModelStatistics, reason: FailureReason, arrived_ns: int, now_ns: int | None = None) -> int:
    """Count a request that failed without running; return its duration in nanoseconds."""
    duration_ns = (time.monotonic_ns() if now_ns is None else now_ns) - arrived_ns
    statistics.record_failure(reason, duration_ns)
    return duration_ns


def displace(statistics: ModelStatistics, arrived_ns: int) -> None:
    """Count a waiting request that was refused to make room for another caller's."""
    statistics.displaced += 1
    fail(statistics, FailureReason.REJECTED, arrived_ns)
