"""One version of a model that wants to know the parameters of its requests (Triton: parameters extension)."""

from typing import Any

from serving_runtime.engine.servable import Servable
from serving_runtime.request import InferRequest
from serving_runtime.scheduler.instance import Execute
from serving_runtime.scheduler.job import Job
from serving_runtime.scheduler.parameters import ParameterizedJob, executing


class ParameterizedServable(Servable):
    """A servable whose model is told whose rows are whose, with the parameters of each request."""

    _job_type = ParameterizedJob

    def _executing(self, model: Any) -> Execute:
        return executing(model.run_parts, self._joining(model))

    def _schedule(self, job: Job, request: InferRequest) -> None:
        super()._schedule(job, request)
        if isinstance(job, ParameterizedJob):
            job.parameters = request.parameters
