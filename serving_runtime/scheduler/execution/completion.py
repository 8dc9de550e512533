"""Completion of requests: answers executions; expires, displaces and cancels waiting jobs."""

import asyncio
from collections.abc import Sequence

from serving_runtime.common.errors import FailureReason, Overloaded, Unavailable
from serving_runtime.config.batching import TimeoutAction
from serving_runtime.scheduler import counting
from serving_runtime.scheduler.execution.execution import Execution
from serving_runtime.scheduler.job import Job
from serving_runtime.scheduler.queue import JobQueue
from serving_runtime.telemetry.statistics import ModelStatistics


def answer(executions: Sequence[Execution], loop: asyncio.AbstractEventLoop) -> None:
    """Call the jobs' callbacks, which write to sockets and must not raise; if one does, the others go on."""
    for execution in executions:
        for job, result in zip(execution.jobs, execution.results, strict=True):
            try:
                if job.follow is not None and execution.timing is not None:
                    job.follow(job.arrived_ns, execution.timing)
                job.on_result(result)
            except Exception as error:
                loop.call_exception_handler({"message": "answering a request failed", "exception": error})


def expire(job: Job, queue: JobQueue, statistics: ModelStatistics) -> None:
    """Apply the timeout action to a job that waited for its whole timeout (Triton: queue policy, timeout_action)."""
    job.timer = None
    if queue.policy(job).timeout_action is TimeoutAction.DELAY:
        queue.delay(job)
        return
    queue.discard(job)
    duration_ns = counting.fail(statistics, FailureReason.REJECTED, job.arrived_ns)
    job.on_result(Unavailable(f"Request timeout expired after {duration_ns // 1000} us in the queue"))


def displace(job: Job, queue: JobQueue, statistics: ModelStatistics, loop: asyncio.AbstractEventLoop) -> None:
    """Refuse a job that left a full queue for another caller's; its callback is called in the loop's next pass."""
    job.stop_timer()
    counting.displace(statistics, job.arrived_ns)
    most = queue.policy(job).max_queue_size
    error = Overloaded(f"Exceeds maximum queue size of {most} waiting requests, of which this caller has the most")
    loop.call_soon(lambda: job.on_result(error))  # unless it is cancelled before


def cancel(job: Job, queue: JobQueue, statistics: ModelStatistics) -> None:
    """Drop a waiting job whose client has gone; counted as cancelled."""
    job.stop_timer()
    queue.discard(job)
    counting.fail(statistics, FailureReason.CANCELED, job.arrived_ns)
