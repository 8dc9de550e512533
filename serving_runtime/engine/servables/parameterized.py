"""Servable of a model that uses request parameters (Triton: parameters extension)."""

from typing import Any

from serving_runtime.common.request import InferRequest
from serving_runtime.engine.servables.servable import Servable
from serving_runtime.scheduler.execution.instance import Execute
from serving_runtime.scheduler.execution.row_parameters import ParameterizedJob, executing
from serving_runtime.scheduler.job import Job


class ParameterizedServable(Servable):
    """A servable whose model receives each request's rows and parameters."""

    _job_type = ParameterizedJob

    def _executing(self, model: Any) -> Execute:
        return executing(model.run_parts, self._joining(model))

    def _schedule(self, job: Job, request: InferRequest) -> None:
        super()._schedule(job, request)
        if isinstance(job, ParameterizedJob):
            job.parameters = request.parameters
