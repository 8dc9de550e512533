"""Recorded requests and the replay of a version on them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from deployments.models import InferenceService
from integrations.clusters.base import Exchange
from jobs.services import run_claim
from recordings.models import Recording, Replay
from recordings.reconcile import payload_files
from recordings.services.replays import REPLAY, replay_start
from tests.deployments._support.platform import Platform

SERVICE = {"namespace": "default", "name": "digits"}


def exchange(number: int, *, label: int | None = None, error: str = "") -> Exchange:
    data = {"name": "image", "datatype": "FP32", "shape": [1, 2], "data": [float(number), 0.5]}
    output = {"name": "label", "datatype": "INT64", "shape": [1], "data": [number % 10 if label is None else label]}
    response: dict[str, Any] = {"error": error} if error else {"outputs": [output]}
    code = "INTERNAL" if error else ""
    return Exchange(f"request-{number}", "digits-00001", "1", 1000.0 + number, {"inputs": [data]}, response, code)


class Scene:
    """A live service with a recording of 30 requests, and a version 2."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        platform.live()
        platform.version(2)
        self.recording = self.record(30)

    def record(self, count: int) -> Recording:
        row = Recording.objects.create(
            service=InferenceService.objects.get(),
            consent="They agreed in writing.",
            share_percent=100,
            max_requests=1000,
            max_bytes=1 << 30,
            created_at=timezone.now(),
            created_by="alice",
            expires_at=timezone.now() + timedelta(days=7),
            ended_at=timezone.now(),
        )
        if count:
            row.bytes = payload_files.append(row.pk, [exchange(number) for number in range(count)], at=0)
            row.requests = count
            row.save()
        return row

    def start(self, version: str = "2", **more: Any) -> Replay:
        asked = {"recording": None, **more}
        return replay_start(**SERVICE, version=version, actor="alice", now=timezone.now(), **asked)

    def make(self, row: Replay) -> Replay:
        run_claim.run(REPLAY, row.pk, lambda _kind: self.platform.cluster, clock=timezone.now)
        row.refresh_from_db()
        return row

    def answers(self, answer: Callable[[Exchange], Exchange]) -> None:
        self.platform.cluster.answers["2"] = answer
