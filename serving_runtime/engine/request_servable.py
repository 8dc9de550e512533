"""One version of a model that takes requests one by one, as those in worker processes do."""

from typing import Any

from serving_runtime.backends.base import CallingModel, Outputs
from serving_runtime.datatypes import Array
from serving_runtime.engine.plan import Selection
from serving_runtime.engine.servable import Servable
from serving_runtime.request import InferRequest, InferResponse
from serving_runtime.scheduler.instance import Execute
from serving_runtime.scheduler.job import Job
from serving_runtime.scheduler.requests import RequestJob, executing


class RequestServable(Servable):
    """A servable whose model is told of each request, and may answer it with parameters."""

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
        return executing(model.run_requests)

    def _schedule(self, job: Job, request: InferRequest) -> None:
        super()._schedule(job, request)
        assert isinstance(job, RequestJob)  # noqa: S101 - see _job_type
        job.request = request

    def _response(self, request: InferRequest, selection: Selection, result: list[Array]) -> InferResponse:
        response = super()._response(request, selection, result)
        assert isinstance(result, Outputs)  # noqa: S101 - backends.base.RequestModel gives no others
        return response._replace(parameters=result.parameters)
