"""The platform of the reconciler's tests: fakes of all that is outside, and steps in made-up time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.utils import timezone

from deployments.domain.phases import ServicePhase
from deployments.models import AnalysisRun, InferenceService, Rollout
from deployments.reconcile import reconciler
from deployments.reconcile.memory import Memory
from deployments.reconcile.reconciler import Outcome, Outside
from deployments.selectors import ServiceView, service_detail
from deployments.services import (
    model_follow,
    policy_apply,
    rollout_start,
    service_apply,
    service_rollback,
)
from events.models import Event
from registry.domain.version_lifecycle import Status
from registry.models import Alias, ModelVersion, RegisteredModel
from tests.deployments._support.fakes import FakeCluster, FakeMetrics, ManualClock

POLICY = {
    "name": "careful",
    "steps": [
        {"weight": 10, "hold": "10s", "analysis": {"minRequests": 100}},
        {"weight": 50, "hold": "10s", "analysis": {"minRequests": 100}},
    ],
    "scaleDownDelay": "30s",
    "progressDeadline": "2m",
}


SIGNATURE = {
    "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 64]}],
    "outputs": [{"name": "label", "datatype": "INT64", "shape": [-1]}],
}


@dataclass
class Platform:
    """Services on the database, a fake cluster and a clock; `turn` is one turn of the reconciler's loop."""

    cluster: FakeCluster = field(default_factory=FakeCluster)
    metrics: FakeMetrics = field(default_factory=FakeMetrics)
    clock: ManualClock = field(default_factory=ManualClock)
    memory: Memory = field(default_factory=lambda: Memory(time.monotonic))

    @property
    def outside(self) -> Outside:
        return Outside(self.cluster, self.metrics, self.clock, memory=self.memory)

    def version(
        self,
        number: int,
        *,
        model: str = "digits",
        status: Status = Status.READY,
        signature: dict[str, Any] = SIGNATURE,
        reason: str = "",
    ) -> ModelVersion:
        registered, _ = RegisteredModel.objects.get_or_create(
            name=model, defaults={"created_at": self.clock(), "created_by": "test"}
        )
        return ModelVersion.objects.create(
            model=registered,
            number=number,
            digest=f"sha256:{model}-{number}",
            artifact_uri=f"file:///artifacts/{model}-{number}",
            size_bytes=1,
            source_name="model.onnx",
            signature=signature,
            status=status,
            reason=reason,
            created_at=self.clock(),
            created_by="test",
        )

    def alias(self, version: ModelVersion, name: str = "champion") -> None:
        Alias.objects.update_or_create(
            model=version.model, name=name, defaults={"version": version, "moved_at": self.clock()}
        )

    def policy(self, **changed: object) -> None:
        policy_apply(document={**POLICY, **changed}, name=None, actor="alice", now=self.clock())

    def document(
        self, uri: str = "models:/digits/1", policy: str | None = "careful", replicas: int = 1, **predictor: Any
    ) -> dict[str, Any]:
        model = {"modelFormat": {"name": "onnx"}, "storageUri": uri}
        predictor = {"minReplicas": replicas, "model": model, **predictor}
        return {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": "digits"},
            "spec": {"predictor": predictor} | ({"rollout": {"policy": policy}} if policy else {}),
        }

    def apply(self, **file: Any) -> InferenceService:
        document = self.document(**file)
        service, _ = service_apply(document=document, namespace=None, name=None, actor="alice", now=self.clock())
        return service

    def start(self, version: str = "2", policy: str | None = None) -> Rollout:
        return rollout_start(
            namespace="default", name="digits", version=version, policy=policy, actor="alice", now=self.clock()
        )

    def back(self, revision: str | None = None) -> Rollout:
        return service_rollback(namespace="default", name="digits", revision=revision, actor="alice", now=self.clock())

    def promoted(self, number: int = 2) -> None:
        """Bring a live service to a further version, by a policy without a gate."""
        self.version(number)
        self.policy(name="quick", steps=[{"weight": 50}], scaleDownDelay="30s")
        self.start(str(number), "quick")
        self.until(lambda: self.rollout().phase == "Healthy")

    def turn(self, *, seconds: float = 2.0, settle: bool = True) -> Outcome:
        """Let time pass, let the cluster do what it was asked, and tick the newest service."""
        self.clock.go_on(seconds)
        if settle:
            self.cluster.settle()
        service_id = InferenceService.objects.values_list("pk", flat=True).latest("pk")
        model_follow(service_id=service_id, now=self.clock())
        return reconciler.tick(service_id, self.outside)

    def until(self, look: Callable[[], object], turns: int = 60) -> None:
        for _ in range(turns):
            if look():
                return
            self.turn()
        pytest.fail(f"not after {turns} turns: {self.view()}")

    def live(self, **file: Any) -> InferenceService:
        """Return a service that serves version 1, with the policy `careful`."""
        self.version(1)
        self.policy()
        self.apply(**file)
        self.until(lambda: InferenceService.objects.filter(phase=ServicePhase.READY).exists())
        self.metrics.serve("digits-00001", 1000, slow=20)
        return InferenceService.objects.get()

    def view(self) -> ServiceView:
        return service_detail(namespace="default", name="digits", now=timezone.now())

    def rollout(self) -> Rollout:
        return Rollout.objects.select_related("from_revision", "to_revision").latest("id")

    def events(self) -> list[str]:
        return list(Event.objects.exclude(service=None).order_by("seq").values_list("kind", flat=True))

    def traffic(self, requests: int = 400, **canary: int) -> None:
        """Send requests to where the cluster was last asked to; `canary` says how many of its requests went wrong."""
        for name, weight in self.cluster.weights().items():
            bad = canary if self.rollout().to_revision.name == name else {}
            if weight:
                self.metrics.serve(name, requests * weight // 100, **bad)
        for name, share in self.cluster.copies().items():
            self.metrics.serve(name, requests * share // 100, copies=True, **canary)

    def bad_time(self, *, failed: int = 0, slow: int = 0, until_percent: float = 100.0, blocks: int = 40) -> None:
        """Let the canary serve 8 requests in each turn, so many of them badly, until the evidence is so far."""
        for _ in range(blocks):
            self.metrics.serve("digits-00001", 72)
            self.metrics.serve("digits-00002", 8, failed=failed, slow=slow)
            self.turn()
            measured = AnalysisRun.objects.latest("id").measurements
            if max(each["evidence_percent"] for each in measured) >= until_percent:
                return
        pytest.fail(f"the evidence stays below {until_percent} %: {measured}")
