"""Servable of a model that uses request parameters, per row of a batch (Triton: parameters extension)."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from serving_runtime.common.datatypes import Array
from serving_runtime.common.request import NO_PARAMETERS, InferRequest
from serving_runtime.engine.servables.servable import Servable
from serving_runtime.scheduler.execution.execution import PLAIN, Execution, Joining, Run, execute_once
from serving_runtime.scheduler.execution.instance import Execute
from serving_runtime.scheduler.job import Job, OnResult


class BatchPart(NamedTuple):
    """One request of a batch: its rows follow those of the part before it."""

    rows: int
    parameters: Mapping[str, Any]


RunParts: TypeAlias = Callable[[Sequence[Array], Sequence[BatchPart]], list[Array]]


class ParameterizedJob(Job):
    """A job that carries its request's parameters."""

    __slots__ = ("parameters",)

    def __init__(
        self, arrays: Sequence[Array], rows: int, shape_key: Hashable, on_result: OnResult, arrived_ns: int
    ) -> None:
        super().__init__(arrays, rows, shape_key, on_result, arrived_ns)
        self.parameters: Mapping[str, Any] = NO_PARAMETERS


def executing(run_parts: RunParts, joining: Joining = PLAIN) -> Callable[[Run, Sequence[Job]], list[Execution]]:
    """Return a replacement of `execution.execute` for a model that takes each request's rows and parameters."""

    def run_for(jobs: Sequence[Job]) -> Run:
        parts = [BatchPart(job.rows, job.parameters) for job in cast(Sequence[ParameterizedJob], jobs)]
        return lambda inputs: run_parts(inputs, parts)

    def execute_parts(_run: Run, jobs: Sequence[Job]) -> list[Execution]:
        execution = execute_once(run_for(jobs), jobs, joining)
        if execution.timing is None and len(jobs) > 1:  # as execution.execute says
            return [execute_once(run_for((job,)), (job,), joining) for job in jobs]
        return [execution]

    return execute_parts


class ParameterizedServable(Servable):
    """A servable whose model receives each request's rows and parameters."""

    _job_type = ParameterizedJob

    def _executing(self, model: Any) -> Execute:
        return executing(model.run_parts, self._joining(model))

    def _schedule(self, job: Job, request: InferRequest) -> None:
        super()._schedule(job, request)
        if isinstance(job, ParameterizedJob):
            job.parameters = request.parameters
