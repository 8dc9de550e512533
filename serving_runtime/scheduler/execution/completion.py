"""Completion of requests: answers executions; expires and cancels waiting jobs."""

import asyncio
from collections.abc import Sequence

from serving_runtime.common.errors import FailureReason, Unavailable
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


def cancel(job: Job, queue: JobQueue, statistics: ModelStatistics) -> None:
    """Drop a waiting job whose client has gone; counted as cancelled."""
    job.stop_timer()
    queue.discard(job)
    counting.fail(statistics, FailureReason.CANCELED, job.arrived_ns)
