"""Servable of an ensemble, answered by the models of its steps."""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from serving_runtime.common.errors import Unavailable
from serving_runtime.common.request import Cancellable, InferRequest, OnDone
from serving_runtime.config.model import ModelConfig
from serving_runtime.engine.requests.classification import NO_LABELS, Labels
from serving_runtime.engine.servables.servable import Servable
from serving_runtime.scheduler.cache.response_cache import ResponseCache
from serving_runtime.scheduler.ensembles.scheduler import EnsembleJob, EnsembleScheduler
from serving_runtime.scheduler.job import Job
from serving_runtime.scheduler.rate_limiter import RateLimiter


class Answering(Protocol):
    """The server's interface to servables: other models for an ensemble's steps, and what all models share."""

    response_cache: ResponseCache | None
    rate_limiter: RateLimiter | None

    def infer_step(self, request: InferRequest, on_done: OnDone) -> Cancellable: ...

    def stream_step(self, request: InferRequest, on_done: OnDone) -> Cancellable: ...

    def serves(self, name: str, version: str) -> bool: ...

    def labels(self, name: str, version: str) -> Labels: ...


class EnsembleServable(Servable):
    """A servable that other servables answer for (Triton: ensemble models)."""

    _job_type = EnsembleJob

    def __init__(self, *, config: ModelConfig, answering: Answering, **given: Any) -> None:
        assert config.ensemble is not None  # noqa: S101 - what this class is for
        self._answering = answering
        self._steps = config.ensemble.steps
        self._own_labels = NO_LABELS
        self._parts = sorted({(step.model, step.version) for step in self._steps})
        super().__init__(config=config, **given)

    @property
    def labels(self) -> Labels:
        """Return the labels of its outputs: its own, else those of the model outputs that become them."""
        found: dict[str, Sequence[str]] = {}
        for step in self._steps:
            known = self._answering.labels(step.model, step.version)
            found |= {tensor: known[name] for name, tensor in step.outputs.items() if name in known}
        return found | dict(self._own_labels)

    @labels.setter
    def labels(self, own: Labels) -> None:
        self._own_labels = own

    @property
    def steps_under_way(self) -> int:
        assert isinstance(self.scheduler, EnsembleScheduler)  # noqa: S101 - see _scheduler_for
        return self.scheduler.steps_under_way

    @property
    def problem(self) -> str:
        """Return which of its models is missing, in words; empty while the ensemble can answer."""
        for name, version in self._parts:
            if not self._answering.serves(name, version):
                which = f"'{name}' version {version}" if version else f"'{name}'"
                return f"model {which} of its steps is not loaded"
        return ""

    def infer(self, request: InferRequest, on_done: OnDone) -> Job:
        problem = self.problem
        if problem:
            raise Unavailable(f"ensemble '{self.name}' is not ready: {problem}")
        return super().infer(request, on_done)

    def _scheduler_for(self, model: Any, *, inline: bool) -> EnsembleScheduler:  # noqa: ARG002 - it runs nothing itself
        assert self.config.ensemble is not None  # noqa: S101
        return EnsembleScheduler(
            self.config.ensemble,
            name=self.name,
            outputs=[spec.name for spec in model.signature.outputs],
            submit=self._answering.infer_step,
            statistics=self.statistics,
            loop=asyncio.get_running_loop(),
        )

    def _schedule(self, job: Job, request: InferRequest) -> None:
        assert isinstance(job, EnsembleJob)  # noqa: S101 - see _job_type
        job.request = request
