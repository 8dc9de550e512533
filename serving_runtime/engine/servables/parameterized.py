"""One version of a model that wants to know the parameters of its requests (Triton: parameters extension)."""

from typing import Any

from serving_runtime.common.request import InferRequest
from serving_runtime.engine.servables.servable import Servable
from serving_runtime.scheduler.execution.instance import Execute
from serving_runtime.scheduler.execution.row_parameters import ParameterizedJob, executing
from serving_runtime.scheduler.job import Job


class ParameterizedServable(Servable):
    """A servable whose model is told whose rows are whose, with the parameters of each request."""

    _job_type = ParameterizedJob

    def _executing(self, model: Any) -> Execute:
        return executing(model.run_parts, self._joining(model))

    def _schedule(self, job: Job, request: InferRequest) -> None:
        super()._schedule(job, request)
        if isinstance(job, ParameterizedJob):
            job.parameters = request.parameters
