"""A tuning under way, on a cluster that is a fake."""

import json
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from integrations.clusters.base import Job, JobResult, OnStage
from jobs.services import run_claim
from model_jobs.models import Tuning
from model_jobs.tunings.domain.order import TuningOrder
from model_jobs.tunings.services import TUNING, tuning_start
from tests.deployments._support.platform import Platform

SERVICE = ("default", "digits")


POINT = {"instances": 2, "batch_size": 8, "requests_per_s": 100.0, "p99_ms": 4.0}


CONFIG = {"max_batch_size": 8, "dynamic_batching": {"max_queue_delay_microseconds": 100}}


REPORT: dict[str, Any] = {
    "schema": "fairlead.tune/v1",
    "chosen": {**POINT, "config": CONFIG},
    "frontier": [POINT],
    "plot": "<svg/>",
}


Run = Callable[[Job, OnStage], JobResult]


class Scene:
    """A live service of version 1, and a cluster whose jobs end as told."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        platform.live()
        self.jobs: list[Job] = []

    def start(self, service: tuple[str, str] | None = SERVICE, **order: Any) -> Tuning:
        asked = TuningOrder(**{"max_latency_p99_ms": 5.0, **order})
        return tuning_start(model="digits", number=1, service=service, order=asked, actor="alice", now=timezone.now())

    def make(self, row: Tuning, run: Run | None = None) -> Tuning:
        class Cluster:
            def run(_self, job: Job, told: OnStage) -> JobResult:  # noqa: N805
                self.jobs.append(job)
                return run(job, told) if run else JobResult(0, json.dumps(REPORT))

        run_claim.run(TUNING, row.pk, lambda _cluster: Cluster(), clock=timezone.now)  # type: ignore[arg-type, return-value]
        row.refresh_from_db()
        return row
