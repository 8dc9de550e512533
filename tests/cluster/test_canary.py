"""A canary on Kubernetes from end to end: the reconciler on its database, the driver, pods of the real runtime, and
clients that keep sending over HTTP and gRPC. No client ever sees a failure.

A person moves the rollout's clock: what is waited for is the cluster, never a time.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from deployments import reconciler
from deployments.models import InferenceService
from deployments.reconciler import Outcome, Outside
from deployments.services import service_delete
from integrations import metrics
from integrations.clusters.kubernetes import kinds
from integrations.clusters.kubernetes.manifests.names import SERVICE
from registry.lifecycle import Status
from registry.models import ModelVersion
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.deployments.conftest import Platform
from tests.integrations.conftest import Traffic, model

pytestmark = pytest.mark.cluster
_WITHIN_S = 600.0


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with harness(plane, tmp_path_factory.mktemp("canary")) as running:
        yield running


@dataclass
class OnKubernetes(Platform):
    """The platform of the reconciler's tests, with a real outside."""

    harness: Harness = field(kw_only=True)

    @property
    def outside(self) -> Outside:
        return Outside(self.harness.driver, metrics.collect, self.clock)

    def version(self, number: int, **more: Any) -> ModelVersion:
        made = super().version(number, status=Status.READY)
        stored = self.harness.store(model(number))
        made.digest, made.artifact_uri = stored.digest, stored.uri
        made.save()
        return made

    def turn(self, *, seconds: float = 1.0, settle: bool = True) -> Outcome:
        self.clock.go_on(seconds)
        return reconciler.tick(InferenceService.objects.get().pk, self.outside)

    def until_so(self, look: Callable[[], object]) -> None:
        deadline = time.monotonic() + _WITHIN_S
        while not look():
            assert time.monotonic() < deadline, f"not within {_WITHIN_S:g} s: {self.view()}"
            self.turn()


@pytest.fixture
def on_kubernetes(db: None, cluster: Harness) -> OnKubernetes:
    return OnKubernetes(harness=cluster)


def test_a_canary_is_promoted_and_rolled_back_and_no_client_notices(on_kubernetes: OnKubernetes) -> None:
    platform, cluster = on_kubernetes, on_kubernetes.harness
    platform.version(1)
    platform.version(2)
    platform.policy(name="by-weight", steps=[{"weight": 50, "hold": "2s"}], scaleDownDelay="2s")
    platform.apply(policy="by-weight", replicas=2)
    platform.until_so(lambda: platform.view().phase == "Ready")
    _until_routed(platform)

    with Traffic(cluster.gateway.url, clients=1) as traffic:
        traffic.until_sent(20, within_s=60)
        platform.start("2")
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        seen = traffic.by_revision()
        assert min(seen["digits-00001"], seen["digits-00002"]) > 0, seen
        _until_only(platform, traffic, "digits-00002")

        _delete_one_pod(platform, "digits-00002")
        platform.until_so(lambda: _ready(platform, "digits-00002") == 2)

        platform.back()
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        _until_only(platform, traffic, platform.rollout().to_revision.name)
        sent = len(traffic.outcomes)
    assert traffic.failures == [], f"of {sent} requests"

    service_delete(namespace="default", name="digits", actor="alice", now=platform.clock())
    deadline = time.monotonic() + _WITHIN_S
    while platform.turn() is not Outcome.REMOVED:
        assert time.monotonic() < deadline, "the service is not removed"
    assert _left(cluster) == []


def _until_routed(platform: OnKubernetes) -> None:
    """Wait until the gateway answers, with what version 1 makes of its input."""
    url = f"{platform.harness.gateway.url}/serving/default/digits/v2/models/digits/infer"
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}

    def answered() -> bool:
        answer = httpx.post(url, json=body, timeout=10, trust_env=False)
        return answer.status_code == 200 and answer.json()["outputs"][0]["data"] == [1, 2, 3, 4]

    platform.until_so(answered)


def _until_only(platform: OnKubernetes, traffic: Traffic, revision: str) -> None:
    """Wait until 20 answers in a row came from one revision."""
    platform.until_so(lambda: {name for name, _ in traffic.outcomes[-20:]} == {revision})


def _delete_one_pod(platform: OnKubernetes, revision: str) -> None:
    """End one of a revision's pods as a drained node does."""
    seen = platform.harness.driver.observe("default", "digits").revision(revision)
    assert seen is not None
    with platform.harness.plane.client() as client:
        client.delete(kinds.POD.path("default", seen.replicas[0].name)).raise_for_status()
    platform.until_so(lambda: not _has_pod(platform, seen.replicas[0].name))


def _has_pod(platform: OnKubernetes, name: str) -> bool:
    seen = platform.harness.driver.observe("default", "digits")
    return any(replica.name == name for revision in seen.revisions for replica in revision.replicas)


def _ready(platform: OnKubernetes, revision: str) -> int:
    seen = platform.harness.driver.observe("default", "digits").revision(revision)
    return 0 if seen is None else seen.ready_replicas


def _left(cluster: Harness) -> list[str]:
    """Return what is still there of the service."""
    with cluster.plane.client() as client:
        answers = [
            client.get(kind.path("default"), params={"labelSelector": f"{SERVICE}=digits"}).json()
            for kind in (*kinds.PRUNED, kinds.POD, kinds.CONFIG_MAP)
        ]
    return [each["metadata"]["name"] for answer in answers for each in answer["items"]]
