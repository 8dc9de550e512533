"""The platform of the reconciler's tests on Kubernetes: its database, the driver, pods of the real runtime, a gateway.

A person moves the rollout's clock: what is waited for is the cluster, never a time.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

from deployments.models import InferenceService
from deployments.reconcile import reconciler
from deployments.reconcile.reconciler import Outcome, Outside
from deployments.services import rollout_abort, rollout_promote, service_delete
from integrations.clusters.base import ObservedRevision
from integrations.clusters.kubernetes.api import resource_types
from integrations.metrics import counters
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion
from tests.cluster.harness import Harness
from tests.deployments._support.platform import Platform
from tests.integrations._support.runtimes import Traffic, model

WITHIN_S = 600.0


def _rest(began: float) -> None:
    """Leave the processor to what is waited for, the longer the longer it has been waited for."""
    time.sleep(min(0.3 + (time.monotonic() - began) / 20, 1.0))


@dataclass
class OnKubernetes(Platform):
    """The platform of the reconciler's tests, with a real outside."""

    harness: Harness = field(kw_only=True)

    @property
    def outside(self) -> Outside:
        driver = self.harness.driver
        return Outside(driver, partial(counters.collect, page_of=driver.metrics_page), self.clock)

    def version(self, number: int, **more: Any) -> ModelVersion:
        made = super().version(number, status=Status.READY)
        stored = self.harness.store(more.get("content") or model(number))
        made.digest, made.artifact_uri = stored.digest, stored.uri
        made.save()
        return made

    def turn(self, *, seconds: float = 1.0, settle: bool = True) -> Outcome:
        self.clock.go_on(seconds)
        return reconciler.tick(InferenceService.objects.get().pk, self.outside)

    def until_so(self, look: Callable[[], object]) -> None:
        began = time.monotonic()
        while not look():
            assert time.monotonic() < began + WITHIN_S, f"not within {WITHIN_S:g} s: {self.view()}"
            self.turn()
            _rest(began)

    def until_routed(self) -> None:
        """Wait until the gateway answers, with what version 1 makes of its input."""
        url = f"{self.harness.gateway.url}/serving/default/digits/v2/models/digits/infer"
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}

        def answered() -> bool:
            answer = httpx.post(url, json=body, timeout=10, trust_env=False)
            return answer.status_code == 200 and answer.json()["outputs"][0]["data"] == [1, 2, 3, 4]

        self.until_so(answered)

    def until_only(self, traffic: Traffic, revision: str) -> None:
        """Wait until 20 answers in a row came from one revision."""
        self.until_so(lambda: {name for name, _ in traffic.outcomes[-20:]} == {revision})

    def seen(self, revision: str) -> ObservedRevision:
        """Return a revision as it is; without replicas where there is none of that name."""
        found = self.harness.driver.observe("default", "digits").revision(revision)
        return found or ObservedRevision(revision, 0)

    def until_ready(self, revision: str, replicas: int) -> None:
        """Wait until so many replicas are ready and no other is left."""

        def ready() -> bool:
            found = self.seen(revision)
            return len(found.replicas) == found.ready_replicas == replicas

        self.until_so(ready)

    def delete_pod(self, revision: str, name: str = "") -> None:
        """End one of a revision's pods as a drained node does, and wait until it is gone."""
        name = name or self.seen(revision).replicas[0].name
        with self.harness.plane.client() as client:
            client.delete(resource_types.POD.path("default", name)).raise_for_status()
        self.until_so(lambda: name not in {replica.name for replica in self.seen(revision).replicas})

    def promote(self) -> None:
        """Leave the rollout's pause."""
        rollout_promote(rollout_id=self.rollout().pk, actor="alice", now=self.clock())

    def abort(self) -> None:
        """Give all traffic back to stable."""
        rollout_abort(rollout_id=self.rollout().pk, actor="alice", now=self.clock())

    def remove(self) -> None:
        """Delete the service, if there is one, and wait until nothing of it is left."""
        service = InferenceService.objects.first()
        if service is None:
            return
        if service.deleting_at is None:
            service_delete(namespace="default", name="digits", actor="alice", now=self.clock())
        began = time.monotonic()
        while self.turn() is not Outcome.REMOVED:
            assert time.monotonic() < began + WITHIN_S, "the service is not removed"
            _rest(began)
