"""Servable: one version of one model, ready to answer requests."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ServingError, Unsupported
from serving_runtime.common.request import NO_PARAMETERS, InferRequest, InferResponse, OnDone, RequestContext
from serving_runtime.config.batching import BatchPolicy
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.tensors import ModelTensor
from serving_runtime.engine.requests.checks import RequestPlan, Selection
from serving_runtime.engine.requests.classification import NO_LABELS, Labels
from serving_runtime.engine.requests.parameters import unsigned
from serving_runtime.scheduler import counting
from serving_runtime.scheduler.base import ModelScheduler
from serving_runtime.scheduler.execution.execution import PLAIN, Joining, execute
from serving_runtime.scheduler.execution.instance import Execute
from serving_runtime.scheduler.execution.ragged import joining
from serving_runtime.scheduler.job import Job, Result
from serving_runtime.scheduler.rate_limiter import Limit
from serving_runtime.scheduler.scheduler import Scheduler
from serving_runtime.telemetry.metrics.histogram import Histogram, Layout
from serving_runtime.telemetry.statistics import BatchTiming, ModelStatistics, SummarisedStatistics


class Servable:
    """A loaded model with its checks, its scheduler and its counters.

    Attributes:
        message: the completed ModelConfig message, as the config endpoints show it.
        labels: of the classes of its outputs.
        scheduler: chosen here, once; a subclass makes another by `_scheduler_for`, and the jobs that it takes.
        model: the model that runs; a predecessor may share it.
        memory_bytes: memory of the model, measured when it was loaded.
    """

    labels: Labels = NO_LABELS
    _job_type: type[Job] = Job
    _threaded = False  # whether its runs must stay out of the event loop

    def __init__(
        self,
        *,
        version: str,
        message: Any,
        config: ModelConfig,
        model: Any,
        inline: bool,
        limit: Limit | None = None,
    ) -> None:
        self.name = config.name
        self.version = version
        self.message = message
        self.config = config
        self.model = model
        self.statistics = _statistics(config)
        self.memory_bytes = 0
        self._loaded_ms = time.time_ns() // 1_000_000
        self._limit = limit
        self._predecessors: list[Servable] = []
        self._plan = RequestPlan(config, model.signature)
        self._batching: BatchPolicy | None = config.batching
        self.scheduler: ModelScheduler = self._scheduler_for(model, inline=inline)

    def _scheduler_for(self, model: Any, *, inline: bool) -> ModelScheduler:
        return Scheduler(
            model.run,
            name=f"{self.name}-{self.version}",
            policy=self.config.batching,
            instances=self.config.instance_count,
            inline=inline,
            statistics=self.statistics,
            loop=asyncio.get_running_loop(),
            limit=self._limit,
            execute=self._executing(model),
            threaded=self._threaded,
        )

    def _executing(self, model: Any) -> Execute:
        """Return the function that runs a batch of the model."""
        joined = self._joining(model)
        return execute if joined is PLAIN else partial(execute, joining=joined)

    def _joining(self, model: Any) -> Joining:
        """Return how requests are joined to a batch of the model."""
        ragged = self.config.ragged
        return PLAIN if ragged is None else joining(ragged, model.signature)

    def infer(self, request: InferRequest, on_done: OnDone) -> Job:
        """Check and queue a request; on_done is called later. Raises ServingError when it is refused right away."""
        return counting.admitted(self._job, request, on_done, self.scheduler, self.statistics)

    def _job(self, request: InferRequest, on_done: OnDone, arrived_ns: int) -> Job:
        """Return the job of a request; raises ServingError where it does not fit the model."""
        arrays, rows, shape_key = self._plan.arrange(request.inputs)
        selection = self._plan.selection(request.outputs)

        def answer(result: Result) -> None:
            if isinstance(result, ServingError):
                on_done(result)
            else:
                on_done(self._response(request, selection, result, rows))

        job = self._job_type(arrays, rows, shape_key, answer, arrived_ns)
        job.caller = request.caller
        if request.context is not None:
            job.follow = self._follower(request.context)
        self._schedule(job, request)
        return job

    def check_explains(self) -> None:
        """Raise Unsupported where the model cannot explain answers (V1: explain)."""
        raise Unsupported(
            f"model '{self.name}' does not explain its answers; a model in Python does by a method explain"
        )

    def explain(self, request: InferRequest, on_done: OnDone) -> Job:  # noqa: ARG002 - refused whatever it is
        """Infer an explanation, with outputs of the model's choice; raises Unsupported."""
        self.check_explains()
        raise AssertionError("a servable that explains has an `explain` of its own")

    def _response(self, request: InferRequest, selection: Selection, result: list[Array], rows: int) -> InferResponse:
        """Return the answer to a request of so many rows."""
        outputs = self._plan.select(selection, result)
        return InferResponse(self.name, self.version, outputs, request.id, NO_PARAMETERS, True, rows)

    @property
    def steps_under_way(self) -> int:
        """Return how many requests to other models it runs for its own requests."""
        return 0

    @property
    def problem(self) -> str:
        """Return why the version cannot answer now, in words; empty while it can."""
        return ""

    def stream(self, request: InferRequest, on_done: OnDone) -> Job:
        """Do as `infer`, for a caller that takes any number of answers."""
        return self.infer(request, on_done)

    def succeed(self, predecessor: "Servable") -> None:
        """Continue the counts of a servable of the same version, which may still answer accepted requests."""
        self._predecessors += [*predecessor._predecessors, predecessor]

    def absorb(self, predecessor: "Servable") -> None:
        """Take over the counts of a predecessor that has answered its last request."""
        if predecessor in self._predecessors:
            self._predecessors.remove(predecessor)
            self.statistics.add(predecessor.statistics)

    @property
    def live_sequences(self) -> int:
        """Return how many sequences have begun here and may go on."""
        return 0

    @property
    def busy(self) -> bool:
        """Return whether any client waits for an answer, or may continue a sequence."""
        return bool(self.counts.inflight or self.live_sequences)

    @property
    def last_used_ms(self) -> int:
        """Return when it ran last, or was loaded: wall clock, milliseconds since the epoch."""
        return max(self._loaded_ms, self.statistics.last_inference_ms)

    @property
    def counts(self) -> ModelStatistics:
        """Return the statistics of the version, which a reload does not reset."""
        if not self._predecessors:
            return self.statistics
        total = ModelStatistics()
        for servable in (*self._predecessors, self):
            total.add(servable.statistics)
        return total

    def metadata_tensors(self, tensors: tuple[ModelTensor, ...]) -> list[dict[str, Any]]:
        """Return inputs or outputs for V2 metadata: with the batch dimension, -1 where variable."""
        batch = [-1] if self.config.max_batch_size else []
        return [
            {"name": tensor.name, "datatype": tensor.datatype.name, "shape": [*batch, *tensor.dims]}
            for tensor in tensors
        ]

    def _follower(self, context: RequestContext) -> Callable[[int, BatchTiming], None] | None:
        """Return the callback that records a request's execution; None where it is not traced."""
        return partial(context.trace.executed, self.name, self.version) if context.trace is not None else None

    def _schedule(self, job: Job, request: InferRequest) -> None:
        """Read the schedule policy extension's parameters, which only the dynamic batcher uses."""
        batching = self._batching
        if batching is None:
            return
        job.priority = batching.default_priority_level
        if request.parameters:
            priority = unsigned(request, "priority")
            if priority and batching.priority_levels:
                job.priority = min(priority, batching.priority_levels)
            job.timeout_us = unsigned(request, "timeout")


def _statistics(config: ModelConfig) -> ModelStatistics:
    """Return statistics with the metrics that config and server enable."""
    layout = Layout(config.metrics.first_response_edges_ms, unit_ns=1_000_000)
    first_response = Histogram(layout) if config.decoupled else None
    return SummarisedStatistics(first_response) if config.metrics.summaries else ModelStatistics(first_response)
