"""Dynamic batching scheduler: a queue, idle instances, and the event loop that connects them.

    submit -> [queue] -> dispatch: take() -> inline in the loop, or an instance's thread -> finish -> on_result

While all instances are busy requests gather; a free one takes the next batch. With a model that runs inline the
loop itself is the busy instance: requests that arrive in one pass over the sockets are batched in the next callback.
Everything here runs on the event loop's thread except Instance._work.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence

from serving_runtime.config.batching import BatchPolicy
from serving_runtime.scheduler import counting
from serving_runtime.scheduler.batching import take
from serving_runtime.scheduler.execution import completion
from serving_runtime.scheduler.execution.execution import Execution, Run, execute
from serving_runtime.scheduler.execution.instance import Execute, Instance
from serving_runtime.scheduler.execution.run_timing import RunMeter
from serving_runtime.scheduler.job import Job
from serving_runtime.scheduler.queue import NO_POLICY, JobQueue
from serving_runtime.scheduler.rate_limiter import Limit
from serving_runtime.telemetry.statistics import ModelStatistics

_INLINE_BUDGET_NS = 1_000_000
"""How long inline runs may follow each other before the loop polls its sockets again."""


class _Turn:
    """One batch in order, with its executions once it is done."""

    __slots__ = ("executions",)

    def __init__(self) -> None:
        self.executions: Sequence[Execution] | None = None


class AnswerOrder:
    """Holds executions back until all that began before them are done (Triton: preserve_ordering)."""

    def __init__(self) -> None:
        self._turns: deque[_Turn] = deque()
        self._by_first_job: dict[Job, _Turn] = {}

    def began(self, jobs: Sequence[Job]) -> None:
        """Record that a batch runs now; batches are answered in the order of these calls."""
        turn = _Turn()
        self._turns.append(turn)
        self._by_first_job[jobs[0]] = turn

    def ended(self, executions: Sequence[Execution]) -> list[Execution]:
        """Return the executions to answer now that a batch is done, in order; empty while an earlier one still runs."""
        self._by_first_job.pop(executions[0].jobs[0]).executions = executions
        released: list[Execution] = []
        while self._turns and self._turns[0].executions is not None:
            released += self._turns.popleft().executions or ()
        return released


class Scheduler:
    """Runs the jobs of one model version.

    Args:
        policy: how to join requests; None runs each one alone, in the order of arrival (Triton: default scheduler).
        inline: whether to begin in the event loop, as measured at warm-up; measured again while serving.
        limit: makes runs wait for shared resources, which keeps them out of the event loop.
        execute: how a batch is run.
        threaded: keeps runs out of the event loop, however short they are.
    """

    def __init__(
        self,
        run: Run,
        *,
        name: str,
        policy: BatchPolicy | None,
        instances: int,
        inline: bool,
        statistics: ModelStatistics,
        loop: asyncio.AbstractEventLoop,
        limit: Limit | None = None,
        execute: Execute = execute,
        threaded: bool = False,
    ) -> None:
        self._run = run
        self._execute = execute
        self._policy = policy
        self._statistics = statistics
        self._loop = loop
        self._queue = JobQueue(policy.queues if policy is not None else NO_POLICY)
        self._may_expire = policy is not None and policy.may_expire
        self._order = AnswerOrder() if policy is not None and policy.preserve_ordering else None
        in_thread = limit(execute) if limit is not None else execute
        self._instances = [
            Instance(run, loop, self._freed, f"{name}-{number}", execute=in_thread) for number in range(instances)
        ]
        self._idle = list(self._instances)
        self._dispatching = False
        self._delay_timer: asyncio.TimerHandle | None = None
        threaded = threaded or limit is not None
        self._meter = RunMeter(inline=inline and not threaded, moves=not threaded)

    @property
    def pending(self) -> int:
        """Return how many requests wait in the queue."""
        return len(self._queue)

    @property
    def inline(self) -> bool:
        return self._meter.inline

    def submit(self, job: Job) -> None:
        """Queue a job; its on_result is called later, never from here. Raises Overloaded when the queue is full."""
        if self._order is not None:
            job.caller = b""  # answers leave in the order of arrival: one queue for all callers
        displaced = self._queue.push(job)
        if displaced is not None:
            completion.displace(displaced, self._queue, self._statistics, self._loop)
        job.owner = self
        if self._may_expire:
            timeout_us = self._queue.policy(job).timeout_us(job.timeout_us)
            if timeout_us:
                job.timer = self._loop.call_later(timeout_us / 1e6, self._expired, job)
        if not self._dispatching and self._idle:
            self._dispatching = True
            self._loop.call_soon(self._dispatch)

    def cancel(self, job: Job) -> None:
        completion.cancel(job, self._queue, self._statistics)

    def close(self) -> None:
        for instance in self._instances:
            instance.close()

    def _dispatch(self) -> None:
        self._dispatching = False
        if self._delay_timer is not None:
            self._delay_timer.cancel()
            self._delay_timer = None
        stop_ns = time.monotonic_ns() + _INLINE_BUDGET_NS
        while self._idle and self._queue:
            jobs = self._next_batch()
            if not jobs:
                return
            if self._order is not None:
                self._order.began(jobs)
            if not self._meter.inline:
                self._idle.pop().start(jobs)
                continue
            self._finish(self._execute(self._run, jobs))
            if self._queue and time.monotonic_ns() > stop_ns:
                self._dispatching = True
                self._loop.call_soon(self._dispatch)
                return

    def _next_batch(self) -> Sequence[Job]:
        """Take the next batch out of the queue; empty when waiting is worth it, and then a timer ends the wait."""
        policy = self._policy
        count = 1
        if policy is not None and (len(self._queue) > 1 or policy.max_queue_delay_us):  # else the rule takes the one
            count, wait_us = take(self._queue, time.monotonic_ns(), policy)
            if not count:
                self._delay_timer = self._loop.call_later(wait_us / 1e6, self._dispatch)
                return ()
        jobs = self._queue.pop(count)
        if self._may_expire:
            for job in jobs:
                job.stop_timer()
        return jobs

    def _freed(self, instance: Instance, executions: list[Execution]) -> None:
        self._idle.append(instance)
        self._finish(executions)
        if self._queue and not self._dispatching:
            self._dispatch()

    def _finish(self, executions: Sequence[Execution]) -> None:
        for execution in executions:
            if execution.timing is not None:
                self._meter.observe(execution.timing.infer_done - execution.timing.input_done, len(execution.jobs))
        counting.count(executions, self._statistics)
        if self._order is not None:
            executions = self._order.ended(executions)
        completion.answer(executions, self._loop)

    def _expired(self, job: Job) -> None:
        completion.expire(job, self._queue, self._statistics)
