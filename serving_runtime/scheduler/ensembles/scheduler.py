"""Ensemble scheduler (Triton: ensemble models).

Tensors pass from step to step by reference. Each step is a request to its model, which checks, batches, limits and
counts it like a client's request; independent steps run concurrently. The first step that fails, or is refused,
fails its request and no other.
"""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TypeAlias

from serving_runtime.common.datatypes import ABSENT, Array
from serving_runtime.common.errors import FailureReason, ServingError
from serving_runtime.common.request import NO_PARAMETERS, Cancellable, InferRequest, OnDone, Outcome, Tensor
from serving_runtime.config.ensembles import Ensemble
from serving_runtime.scheduler import counting
from serving_runtime.scheduler.ensembles.graph import Graph
from serving_runtime.scheduler.execution.execution import Execution
from serving_runtime.scheduler.job import Job, OnResult
from serving_runtime.telemetry.statistics import BatchTiming, ModelStatistics

Submit: TypeAlias = Callable[[InferRequest, OnDone], Cancellable]
"""Starts a request to a model, as a protocol does; raises ServingError where it is refused right away."""


class EnsembleJob(Job):
    """One request to an ensemble.

    Attributes:
        request: as the client sent it; its parameters and its id go to every step.
        run: set by the scheduler.
    """

    __slots__ = ("request", "run")

    def __init__(
        self, arrays: Sequence[Array], rows: int, shape_key: Hashable, on_result: OnResult, arrived_ns: int
    ) -> None:
        super().__init__(arrays, rows, shape_key, on_result, arrived_ns)
        self.request: InferRequest | None = None
        self.run: _Run | None = None


class _Run:
    """State of a running request.

    Attributes:
        tensors: those of the ensemble that exist so far.
        waiting: the steps that have not begun.
        running: the steps that have begun, by number.
        over: answered or cancelled.
    """

    __slots__ = ("job", "over", "running", "started_ns", "tensors", "waiting")

    def __init__(self, job: EnsembleJob, tensors: dict[str, Tensor], waiting: Sequence[int], started_ns: int) -> None:
        self.job = job
        self.tensors = tensors
        self.waiting = waiting
        self.running: dict[int, Cancellable] = {}
        self.started_ns = started_ns
        self.over = False


class EnsembleScheduler:
    """Runs the requests of one version of an ensemble.

    Args:
        outputs: of the ensemble, in the order of results.

    Attributes:
        steps_under_way: its requests that are with models now.
    """

    inline = True
    pending = 0  # requests wait in the queues of the models

    def __init__(
        self,
        ensemble: Ensemble,
        *,
        name: str,
        outputs: Sequence[str],
        submit: Submit,
        statistics: ModelStatistics,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._name = name
        self._graph = Graph(ensemble)
        self._outputs = outputs
        self._submit = submit
        self._statistics = statistics
        self._loop = loop
        self.steps_under_way = 0

    def submit(self, job: Job) -> None:
        """Begin with the steps that need only the request's inputs. Never raises: a refusal becomes the result."""
        assert isinstance(job, EnsembleJob), "an ensemble's servable makes no others"  # noqa: S101
        assert job.request is not None  # noqa: S101
        tensors = {tensor.name: tensor for tensor in job.request.inputs}
        run = job.run = _Run(
            job, tensors, self._graph.needed(job.request.outputs or self._outputs), time.monotonic_ns()
        )
        job.owner = self
        job.waiting = True
        self._advance(run)

    def cancel(self, job: Job) -> None:
        """Take the running steps out of their models' queues, and begin no other."""
        assert isinstance(job, EnsembleJob)  # noqa: S101
        assert job.run is not None  # noqa: S101 - it was submitted
        self._stop(job.run)
        counting.fail(self._statistics, FailureReason.CANCELED, job.arrived_ns)

    def close(self) -> None: ...

    def _advance(self, run: _Run) -> None:
        ready = self._graph.ready(run.waiting, run.tensors)
        run.waiting = [number for number in run.waiting if number not in ready]
        for number in ready:
            try:
                run.running[number] = self._submit(self._request(run, number), partial(self._stepped, run, number))
            except ServingError as error:
                self._fail(run, error)
                return
            self.steps_under_way += 1

    def _request(self, run: _Run, number: int) -> InferRequest:
        step = self._graph.steps[number]
        request = run.job.request
        assert request is not None  # noqa: S101
        inputs = tuple([run.tensors[tensor]._replace(name=name) for name, tensor in step.inputs.items()])
        return request._replace(
            model_name=step.model,
            model_version=step.version,
            inputs=inputs,
            outputs=tuple(step.outputs),
            classes=NO_PARAMETERS,
        )

    def _stepped(self, run: _Run, number: int, outcome: Outcome) -> None:
        if run.over:
            return
        self.steps_under_way -= 1
        run.running.pop(number, None)
        if isinstance(outcome, ServingError):
            self._fail(run, outcome)
            return
        names = self._graph.steps[number].outputs
        for output in outcome.outputs:
            run.tensors[names[output.name]] = output
        if run.waiting:
            self._advance(run)
        elif not run.running:
            self._succeed(run)

    def _succeed(self, run: _Run) -> None:
        run.over = True
        job, now_ns = run.job, time.monotonic_ns()
        job.waiting = False
        started = run.started_ns
        tensors = run.tensors
        result = [tensors[name].array if name in tensors else ABSENT for name in self._outputs]
        counting.count([Execution([job], [result], BatchTiming(started, started, now_ns, now_ns))], self._statistics)
        job.on_result(result)

    def _fail(self, run: _Run, error: ServingError) -> None:
        """Fail in the loop's next pass: the request may still be inside `submit`."""
        self._stop(run)
        counting.fail(self._statistics, error.reason, run.job.arrived_ns)
        failure = error.within(f"ensemble '{self._name}'")
        self._loop.call_soon(lambda: run.job.on_result(failure))

    def _stop(self, run: _Run) -> None:
        """Take the waiting steps out of their models' queues; results of the running ones are dropped."""
        run.over = True
        run.job.waiting = False
        run.waiting = ()
        self.steps_under_way -= len(run.running)
        for step in run.running.values():
            step.cancel()
        run.running.clear()
