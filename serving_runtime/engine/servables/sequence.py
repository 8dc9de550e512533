"""Servable of a sequence model."""

import asyncio
from collections.abc import Mapping
from typing import Any

from serving_runtime.common.datatypes import Array
from serving_runtime.common.request import InferRequest, OnDone
from serving_runtime.engine.requests.parameters import flag, sequence_id, unsigned
from serving_runtime.engine.servables.servable import Servable
from serving_runtime.scheduler.job import Job
from serving_runtime.scheduler.sequences.scheduler import SequenceScheduler
from serving_runtime.scheduler.sequences.sequence import SequenceJob


class SequenceServable(Servable):
    """A servable whose requests belong to sequences (Triton: sequence extension)."""

    _job_type = SequenceJob

    def __init__(self, *, initial_states: Mapping[str, Array], **given: Any) -> None:
        self._initial_states = initial_states
        super().__init__(**given)

    def _scheduler_for(self, model: Any, *, inline: bool) -> SequenceScheduler:
        assert self.config.sequences is not None  # noqa: S101 - what this class is for
        return SequenceScheduler(
            model.run,
            model.signature,
            self.config.sequences,
            self._initial_states,
            name=f"{self.name}-{self.version}",
            model=self.name,
            instances=self.config.instance_count,
            inline=inline,
            statistics=self.statistics,
            loop=asyncio.get_running_loop(),
            limit=self._limit,
        )

    def infer(self, request: InferRequest, on_done: OnDone) -> Job:
        """Infer; a sequence that began before a reload ends with the model that it began with."""
        for elder in self._predecessors:
            if isinstance(elder, SequenceServable) and elder.follows(request):
                return elder.infer(request, on_done)
        return super().infer(request, on_done)

    def follows(self, request: InferRequest) -> bool:
        """Return whether a request continues a sequence that has begun here."""
        assert isinstance(self.scheduler, SequenceScheduler)  # noqa: S101 - see _scheduler_for
        return not flag(request, "sequence_start") and self.scheduler.follows(sequence_id(request))

    @property
    def live_sequences(self) -> int:
        assert isinstance(self.scheduler, SequenceScheduler)  # noqa: S101
        return self.scheduler.live

    def _schedule(self, job: Job, request: InferRequest) -> None:
        assert isinstance(job, SequenceJob)  # noqa: S101 - see _job_type
        job.correlation_id = sequence_id(request)
        job.start = flag(request, "sequence_start")
        job.end = flag(request, "sequence_end")
        job.timeout_us = unsigned(request, "timeout")
