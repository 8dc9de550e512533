"""Scheduler of decoupled models: one request per instance at a time, each with any number of responses.

    submit -> [queue] -> an instance's thread: stream(inputs, send) -> responses on the event loop -> end or error

Requests are never joined; of a dynamic batcher's settings only the queue's apply: priorities, sizes, timeouts.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import BackendError, Cancelled, ServingError
from serving_runtime.config.batching import BatchPolicy
from serving_runtime.config.signature import TensorSpec
from serving_runtime.scheduler import counting
from serving_runtime.scheduler.decoupled.job import Sender, StreamJob
from serving_runtime.scheduler.execution import completion
from serving_runtime.scheduler.execution.execution import Execution
from serving_runtime.scheduler.execution.instance import Instance
from serving_runtime.scheduler.job import Job
from serving_runtime.scheduler.queue import NO_POLICY, JobQueue
from serving_runtime.scheduler.rate_limiter import Limit
from serving_runtime.telemetry.statistics import BatchTiming, ModelStatistics

Stream: TypeAlias = Callable[[Sequence[Array], Sender], None]


class StreamScheduler:
    """Runs the jobs of one version of a decoupled model; everything but `_execute` runs on the event loop."""

    inline = False

    def __init__(
        self,
        stream: Stream,
        outputs: Sequence[TensorSpec],
        *,
        name: str,
        policy: BatchPolicy | None,
        instances: int,
        statistics: ModelStatistics,
        loop: asyncio.AbstractEventLoop,
        limit: Limit | None = None,
    ) -> None:
        self._stream = stream
        self._run = limit(self._execute) if limit is not None else self._execute
        self._name = name
        self._outputs = outputs
        self._statistics = statistics
        self._loop = loop
        self._queue = JobQueue(policy.queues if policy is not None else NO_POLICY)
        self._instances = [self._instance(number) for number in range(instances)]
        self._idle = list(self._instances)

    @property
    def pending(self) -> int:
        """Return how many requests wait in the queue."""
        return len(self._queue)

    def submit(self, job: Job) -> None:
        """Queue a job; its on_result is called later, never from here. Raises Overloaded when the queue is full."""
        displaced = self._queue.push(job)
        if displaced is not None:
            completion.displace(displaced, self._queue, self._statistics, self._loop)
        job.owner = self
        timeout_us = self._queue.policy(job).timeout_us(job.timeout_us)
        if timeout_us:
            job.timer = self._loop.call_later(timeout_us / 1e6, self._expired, job)
        self._dispatch()

    def cancel(self, job: Job) -> None:
        completion.cancel(job, self._queue, self._statistics)

    def close(self) -> None:
        for instance in self._instances:
            instance.close()

    def _instance(self, number: int) -> Instance:
        name = f"{self._name}-{number}"
        return Instance(self._stream, self._loop, self._finished, name, execute=self._run)

    def _dispatch(self) -> None:
        while self._idle and self._queue:
            jobs = self._queue.pop(1)
            for job in jobs:
                job.stop_timer()
            self._idle.pop().start(jobs)

    def _execute(self, stream: Stream, jobs: Sequence[Job]) -> list[Execution]:
        """Run one request in an instance's thread; returns its execution, the result an empty list or an error."""
        job = jobs[0]
        assert isinstance(job, StreamJob), "a decoupled model's servable makes no others"  # noqa: S101
        started = time.monotonic_ns()
        try:
            inputs = [array if array.flags.aligned else array.copy() for array in job.arrays]
            stream(inputs, Sender(job, self._outputs, self._loop, self._respond))
        except ServingError as error:
            return [Execution(jobs, [error], None)]
        except Exception as error:  # any exception of a model's library is that model's failure, not the server's
            failure = BackendError(f"the model failed: {error}")
            failure.__cause__ = error
            return [Execution(jobs, [failure], None)]
        if job.cancelled:
            return [Execution(jobs, [Cancelled("the request was cancelled")], None)]
        ended = time.monotonic_ns()
        return [Execution(jobs, [[]], BatchTiming(started, started, ended, ended))]

    def _respond(self, job: StreamJob, outputs: list[Array], infer_ns: int, output_ns: int) -> None:
        if not job.cancelled:
            job.sent_ns = time.monotonic_ns()
            self._statistics.record_response(job.sent, infer_ns, output_ns, job.sent_ns - job.arrived_ns)
            job.sent += 1
            self._answer(job, outputs)
        job.taken()

    def _finished(self, instance: Instance, executions: list[Execution]) -> None:
        self._idle.append(instance)
        self._dispatch()
        counting.count(executions, self._statistics)
        for execution in executions:
            for job, result in zip(execution.jobs, execution.results, strict=True):
                self._end(job, result, execution.timing)

    def _end(self, job: Job, result: list[Array] | ServingError, timing: BatchTiming | None) -> None:
        assert isinstance(job, StreamJob)  # noqa: S101 - see _execute
        now_ns = time.monotonic_ns()
        reason = result.reason if isinstance(result, ServingError) else None
        if timing is not None and job.follow is not None:
            job.follow(job.arrived_ns, timing)
        self._statistics.record_stream_end(job.sent, reason, now_ns - job.sent_ns)
        self._answer(job, result)

    def _answer(self, job: Job, result: list[Array] | ServingError) -> None:
        try:
            job.on_result(result)
        except Exception as error:  # callbacks must not raise, but if one does the others go on
            self._loop.call_exception_handler({"message": "answering a request failed", "exception": error})

    def _expired(self, job: Job) -> None:
        completion.expire(job, self._queue, self._statistics)
