"""Servable of a decoupled model: any number of responses per request, so only streams may call it."""

import asyncio
from typing import Any

from serving_runtime.backends.base import CallingModel, Outputs, RemoteModel
from serving_runtime.common.errors import ServingError, Unsupported
from serving_runtime.common.request import NO_PARAMETERS, InferRequest, InferResponse, OnDone
from serving_runtime.engine.servables.servable import Servable
from serving_runtime.scheduler import counting
from serving_runtime.scheduler.decoupled.job import StreamJob
from serving_runtime.scheduler.decoupled.scheduler import StreamScheduler
from serving_runtime.scheduler.job import Job, Result

_STREAMS_PER_PROCESS = 64
"""Concurrent requests of a process; each gets a waiting thread, made when first needed."""


class DecoupledServable(Servable):
    """A servable whose responses come one by one, the last one empty (Triton: decoupled transaction policy)."""

    def _scheduler_for(self, model: Any, *, inline: bool) -> StreamScheduler:  # noqa: ARG002 - always in a thread
        return StreamScheduler(
            model.stream,
            model.signature.outputs,
            name=f"{self.name}-{self.version}",
            policy=self.config.batching,
            instances=self.config.instance_count * (_STREAMS_PER_PROCESS if isinstance(model, RemoteModel) else 1),
            statistics=self.statistics,
            loop=asyncio.get_running_loop(),
            limit=self._limit,
        )

    @property
    def problem(self) -> str:
        return self.model.problem if isinstance(self.model, RemoteModel) else ""

    @property
    def steps_under_way(self) -> int:
        return self.model.calls_under_way if isinstance(self.model, CallingModel) else 0

    def infer(self, request: InferRequest, on_done: OnDone) -> Job:  # noqa: ARG002 - refused whatever it is
        """Raise Unsupported: callers of this take one answer only."""
        raise Unsupported(
            f"model '{self.name}' has a decoupled transaction policy: it answers any number of times, which this call "
            "cannot carry; use ModelStreamInfer or generate_stream"
        )

    def stream(self, request: InferRequest, on_done: OnDone) -> StreamJob:
        """Check and queue a request; on_done is called later, once per response and at the end.

        Raises ServingError when it is refused right away.
        """
        return counting.admitted(self._stream_job, request, on_done, self.scheduler, self.statistics)

    def _stream_job(self, request: InferRequest, on_done: OnDone, arrived_ns: int) -> StreamJob:
        arrays, rows, shape_key = self._plan.arrange(request.inputs)
        selection = self._plan.selection(request.outputs)

        def answer(result: Result) -> None:
            if isinstance(result, ServingError):
                on_done(result)
                return
            outputs = self._plan.select(selection, result) if result else ()
            own = result.parameters if isinstance(result, Outputs) else NO_PARAMETERS
            on_done(InferResponse(self.name, self.version, outputs, request.id, own, not result, rows))

        job = StreamJob(arrays, rows, shape_key, answer, arrived_ns)
        job.caller = request.caller
        job.request = request
        if request.context is not None:
            job.follow = self._follower(request.context)
        self._schedule(job, request)
        return job
