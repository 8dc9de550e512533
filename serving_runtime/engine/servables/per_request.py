"""Servable of a model that takes requests one by one, such as one in worker processes."""

from typing import Any

from serving_runtime.backends.base import CallingModel, ExplainingModel, Outputs
from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import InferRequest, InferResponse, OnDone
from serving_runtime.engine.requests.checks import Selection
from serving_runtime.engine.servables.servable import Servable
from serving_runtime.scheduler import counting
from serving_runtime.scheduler.execution.instance import Execute
from serving_runtime.scheduler.execution.per_request import RequestJob, executing
from serving_runtime.scheduler.job import Job


class RequestServable(Servable):
    """A servable whose model receives each request, and may answer it with parameters."""

    _job_type = RequestJob
    _threaded = True

    @property
    def problem(self) -> str:
        problem: str = self.model.problem
        return problem

    @property
    def steps_under_way(self) -> int:
        return self.model.calls_under_way if isinstance(self.model, CallingModel) else 0

    def _executing(self, model: Any) -> Execute:
        return executing(model.run_requests, getattr(model, "explain_requests", None))

    def check_explains(self) -> None:
        if not isinstance(self.model, ExplainingModel):
            super().check_explains()

    def explain(self, request: InferRequest, on_done: OnDone) -> Job:
        self.check_explains()
        return counting.admitted(self._explaining_job, request, on_done, self.scheduler, self.statistics)

    def _explaining_job(self, request: InferRequest, on_done: OnDone, arrived_ns: int) -> Job:
        arrays, rows, shape_key = self._plan.arrange(request.inputs)

        def answer(result: Any) -> None:
            failed = isinstance(result, ServingError)
            on_done(result if failed else InferResponse(self.name, self.version, result, request.id, rows=rows))

        job = RequestJob(arrays, rows, ("explain", shape_key), answer, arrived_ns)
        job.explaining = True
        self._schedule(job, request)
        return job

    def _schedule(self, job: Job, request: InferRequest) -> None:
        super()._schedule(job, request)
        assert isinstance(job, RequestJob)  # noqa: S101 - see _job_type
        job.request = request

    def _response(self, request: InferRequest, selection: Selection, result: list[Array], rows: int) -> InferResponse:
        response = super()._response(request, selection, result, rows)
        assert isinstance(result, Outputs)  # noqa: S101 - backends.base.RequestModel gives no others
        return response._replace(parameters=result.parameters)
