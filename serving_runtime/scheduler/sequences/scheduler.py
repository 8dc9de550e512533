"""Sequence batcher (Triton: sequence batcher), on an event loop.

    submit -> [sequence] -> slot of an instance, or backlog -> choose() -> instance's thread or the loop -> answer

One instance runs a sequence, one request at a time, in order. A sequence holds its slot from its first request until
the answer of the one with END, until its idle timeout, or until one of its waiting requests is cancelled: the
requests after it would make no sense. Everything but an instance's run happens on the event loop's thread.
"""

import asyncio
import heapq
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import Cancelled, InvalidArgument, ServingError, Unavailable
from serving_runtime.config.sequences import SequencePolicy
from serving_runtime.config.signature import Signature
from serving_runtime.scheduler import counting
from serving_runtime.scheduler.execution import completion
from serving_runtime.scheduler.execution.execution import Execution, Run, execute_once
from serving_runtime.scheduler.execution.instance import Instance
from serving_runtime.scheduler.execution.run_timing import RunMeter
from serving_runtime.scheduler.job import Job
from serving_runtime.scheduler.rate_limiter import Limit
from serving_runtime.scheduler.sequences.inputs import SequenceInputs
from serving_runtime.scheduler.sequences.sequence import (
    CorrelationId,
    Lane,
    LiveSequence,
    SequenceJob,
    next_free,
    sort_idle,
)
from serving_runtime.scheduler.sequences.strategies import strategy
from serving_runtime.telemetry.statistics import ModelStatistics

logger = logging.getLogger(__name__)


class SequenceScheduler:
    """Runs the sequences of one model version.

    Args:
        initial_states: the first state by the name of its input, in the shape of one request.
        clock: nanoseconds of the monotonic clock, like the jobs' arrival times.
    """

    def __init__(
        self,
        run: Run,
        signature: Signature,
        policy: SequencePolicy,
        initial_states: Mapping[str, Array],
        *,
        name: str,
        model: str,
        instances: int,
        inline: bool,
        statistics: ModelStatistics,
        loop: asyncio.AbstractEventLoop,
        limit: Limit | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._run = run
        self._model = model
        self._inputs = SequenceInputs(policy, signature, initial_states, model)
        self._choose = strategy(policy)
        self._max_idle_ns = policy.max_idle_us * 1000
        # without implicit state the model keeps its own, which a second run would corrupt
        self._retries = bool(policy.states)
        self._statistics = statistics
        self._loop = loop
        self._clock = clock
        self._meter = RunMeter(inline=inline and limit is None, moves=limit is None)
        in_thread = limit(self._execute) if limit is not None else self._execute
        self._lanes = [
            Lane(number, policy.slots, Instance(run, loop, self._freed, f"{name}-{number}", execute=in_thread))
            for number in range(instances)
        ]
        self._lane_of = {lane.instance: lane for lane in self._lanes}
        self._sequences: dict[CorrelationId, LiveSequence] = {}
        self._backlog: deque[LiveSequence] = deque()
        self._reaper: asyncio.TimerHandle | None = None
        self._pending = 0

    @property
    def pending(self) -> int:
        """Return how many requests wait."""
        return self._pending

    @property
    def inline(self) -> bool:
        return self._meter.inline

    @property
    def live(self) -> int:
        """Return how many sequences may go on."""
        return len(self._sequences)

    def follows(self, correlation_id: CorrelationId) -> bool:
        """Return whether a sequence has begun here and may go on."""
        return correlation_id in self._sequences

    def submit(self, job: Job) -> None:
        """Queue a request behind its sequence's; raises InvalidArgument where it belongs to none."""
        assert isinstance(job, SequenceJob), "a sequence model's servable makes no others"  # noqa: S101
        sequence = self._sequence_of(job)
        job.sequence = sequence
        job.owner = self
        job.waiting = True
        sequence.jobs.append(job)
        sequence.used_ns = job.arrived_ns
        self._pending += 1
        if job.end:
            sequence.ended = True
            del self._sequences[job.correlation_id]
        if sequence.lane is not None:
            sequence.lane.note(sequence)
            self._wake(sequence.lane)
        elif job.timeout_us:
            job.timer = self._loop.call_later(job.timeout_us / 1e6, self._expired, sequence)
        if self._reaper is None and self._sequences:
            self._reaper = self._loop.call_later(self._max_idle_ns / 1e9, self._reap)

    def cancel(self, job: Job) -> None:
        """Drop the sequence of a waiting request whose client has gone, and all its waiting requests."""
        assert isinstance(job, SequenceJob)  # noqa: S101
        assert job.sequence is not None  # noqa: S101 - it waits, so it was submitted
        sequence = job.sequence
        error = Cancelled(f"sequence {sequence.correlation_id} of model '{self._model}' was cancelled by its client")
        self._give_up(sequence, error)

    def close(self) -> None:
        if self._reaper is not None:
            self._reaper.cancel()
        for lane in self._lanes:
            lane.instance.close()

    def _sequence_of(self, job: SequenceJob) -> LiveSequence:
        """Return the job's sequence, a new one for a START without one; raises InvalidArgument."""
        if not job.correlation_id:
            raise InvalidArgument(
                f"inference request to model '{self._model}' must specify a non-zero or non-empty correlation ID"
            )
        if job.rows != 1:
            raise InvalidArgument(
                f"inference request to model '{self._model}' must specify batch-size 1 due to requirements of sequence "
                f"batcher, found {job.rows}"
            )
        sequence = self._sequences.get(job.correlation_id)
        if sequence is None:
            if not job.start:
                raise InvalidArgument(
                    f"inference request for sequence {job.correlation_id} to model '{self._model}' must specify the "
                    "START flag on the first request of the sequence"
                )
            sequence = self._sequences[job.correlation_id] = self._inputs.begin(job.correlation_id)
            lane = next_free(self._lanes)
            if lane is None:
                self._backlog.append(sequence)
            else:
                self._seat(sequence, lane)
        elif job.start:
            logger.warning("model '%s': sequence %s starts again before it has ended", self._model, job.correlation_id)
        return sequence

    @staticmethod
    def _seat(sequence: LiveSequence, lane: Lane) -> None:
        sequence.lane, sequence.slot = lane, heapq.heappop(lane.free)
        lane.note(sequence)
        for job in sequence.jobs:
            job.stop_timer()

    def _leave(self, sequence: LiveSequence) -> None:
        """Free a sequence's slot for the next one of the backlog."""
        lane = sequence.lane
        assert lane is not None  # noqa: S101 - it has a slot
        heapq.heappush(lane.free, sequence.slot)
        sequence.lane = None
        while self._backlog:
            waiting = self._backlog.popleft()
            if waiting.jobs:  # else it was dropped meanwhile
                self._seat(waiting, lane)
                self._wake(lane)
                return

    def _wake(self, lane: Lane) -> None:
        if not (lane.busy or lane.woken):
            lane.woken = True
            self._loop.call_soon(self._dispatch, lane)

    def _dispatch(self, lane: Lane) -> None:
        lane.woken = False
        if lane.timer is not None:
            lane.timer.cancel()
            lane.timer = None
        if lane.busy:
            return
        rows, wait_us = self._choose(lane.ready, lane.slots, self._clock())
        if not rows:
            if wait_us:
                lane.timer = self._loop.call_later(wait_us / 1e6, self._dispatch, lane)
            return
        lane.busy = True
        jobs = self._take(lane, rows)
        if self._meter.inline:
            self._freed(lane.instance, self._execute(self._run, jobs))
        else:
            lane.instance.start(jobs)

    def _take(self, lane: Lane, rows: Sequence[LiveSequence | None]) -> list[SequenceJob]:
        """Return the jobs to run: each row's next request, completed, or a filler."""
        jobs: list[SequenceJob | None] = []
        taken = None
        for sequence in rows:
            if sequence is None:
                jobs.append(None)
                continue
            key = sequence.key
            job = sequence.jobs.popleft()
            job.waiting = False
            sequence.running = True
            lane.note(sequence)
            self._pending -= 1
            self._inputs.complete(job, sequence)
            taken = job, key
            jobs.append(job)
        assert taken is not None, "a strategy chooses at least one sequence"  # noqa: S101
        return [job if job is not None else self._inputs.null(*taken) for job in jobs]

    def _execute(self, run: Run, jobs: Sequence[Job]) -> list[Execution]:
        """Run a batch; return executions of real requests only. Runs in the loop or in an instance's thread."""
        execution = execute_once(run, jobs)
        real = [(job, result) for job, result in zip(jobs, execution.results, strict=True) if not _is_null(job)]
        if execution.timing is None and self._retries and len(real) > 1:
            return [execute_once(run, (job,)) for job, _ in real]
        return [Execution([job for job, _ in real], [result for _, result in real], execution.timing)]

    def _freed(self, instance: Instance, executions: list[Execution]) -> None:
        lane = self._lane_of[instance]
        lane.busy = False
        now_ns = self._clock()
        for execution in executions:
            if execution.timing is not None:
                self._meter.observe(execution.timing.infer_done - execution.timing.input_done, len(execution.jobs))
            for job, result in zip(execution.jobs, execution.results, strict=True):
                assert isinstance(job, SequenceJob)  # noqa: S101
                assert job.sequence is not None  # noqa: S101
                self._answered(job.sequence, result, now_ns)
        self._wake(lane)
        counting.count(executions, self._statistics)
        completion.answer(executions, self._loop)

    def _answered(self, sequence: LiveSequence, result: Sequence[Array] | ServingError, now_ns: int) -> None:
        sequence.running = False
        sequence.used_ns = now_ns
        if not isinstance(result, ServingError):  # a failed request leaves the state unchanged
            self._inputs.keep(sequence, result)
        if sequence.lane is not None:
            sequence.lane.note(sequence)
        if sequence.ended and not sequence.jobs:
            self._leave(sequence)

    def _reap(self) -> None:
        """Drop sequences beyond their idle timeout, and schedule the next check."""
        self._reaper = None
        now_ns = self._clock()
        idle, next_ns = sort_idle(self._sequences.values(), now_ns, self._max_idle_ns)
        for sequence in idle:
            logger.info("model '%s': sequence %s was idle for too long", self._model, sequence.correlation_id)
            self._forget(sequence)
        if next_ns is not None:
            self._reaper = self._loop.call_later((next_ns - now_ns) / 1e9, self._reap)

    def _expired(self, sequence: LiveSequence) -> None:
        """Reject a sequence that waited in the backlog for as long as one of its requests allows."""
        self._give_up(sequence, Unavailable("timeout of the corresponding sequence has been expired"))

    def _give_up(self, sequence: LiveSequence, error: ServingError) -> None:
        """Fail all waiting requests of a sequence; later ones must start a new one."""
        jobs = list(sequence.jobs)
        sequence.jobs.clear()
        if sequence.lane is not None:
            sequence.lane.note(sequence)
        self._forget(sequence)
        self._pending -= len(jobs)
        now_ns = self._clock()
        for job in jobs:
            job.stop_timer()
            job.waiting = False
            job.arrays = ()
            counting.fail(self._statistics, error.reason, job.arrived_ns, now_ns)
            job.on_result(error)

    def _forget(self, sequence: LiveSequence) -> None:
        sequence.ended = True
        if self._sequences.get(sequence.correlation_id) is sequence:
            del self._sequences[sequence.correlation_id]
        if sequence.lane is not None and sequence.idle:
            self._leave(sequence)


def _is_null(job: Job) -> bool:
    return isinstance(job, SequenceJob) and job.null
