"""Requests recorded by pods on Kubernetes: brought to a real web server with their own tokens, compared and kept."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from django.core.cache import cache
from django.utils import timezone
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from deployments.models import ComparisonRun, Recording
from deployments.services import cluster_apply
from deployments.services.recordings import RecordingOrder, recording_start
from integrations.clusters.kubernetes.api import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from serving_runtime.shared.egress import networks
from tests.cluster._support.kubeconfigs import flat
from tests.cluster.harness import Harness
from tests.cluster.platform import OnKubernetes
from tests.deployments._support.cluster_files import LEAST
from tests.integrations._support.runtimes import Traffic, model
from tests.serving_runtime.telemetry.tap.receiver import receiving

pytestmark = pytest.mark.cluster
GATE = {"minRequests": 20, "maxSlowPercent": None, "deadline": "24h", "comparison": {"minPairs": 40}}
SHADOW: dict[str, Any] = {
    "name": "shadow",
    "strategy": "shadow",
    "then": "end",
    "scaleDownDelay": "1s",
    "progressDeadline": "24h",
    "steps": [{"weight": 100, "analysis": GATE}],
}
CONSENT = "Test data of our own, kept to see that it is kept."


def alike(number: int) -> bytes:
    """Return a model that answers as `model(number)` does and is another file."""
    made = onnx.load_from_string(model(number))
    made.graph.doc_string = "the same again"
    return bytes(made.SerializeToString())


@pytest.fixture
def recording(live_server: LiveServer, cluster: Harness, settings: Settings) -> Iterator[OnKubernetes]:
    """Give a platform whose pods reach its web server, on a cluster that its own file describes."""
    cache.clear()
    settings.DEFAULT_CLUSTER = cluster.options.name
    settings.PAYLOADS_FOLDER = Path(cluster.options.payloads_folder).parent
    options = replace(cluster.options, control_plane_url=live_server.url, egress_allowed=networks("127.0.0.0/8"))
    api = Api(cluster.plane.kubeconfig)
    platform = OnKubernetes(harness=replace(cluster, options=options, driver=KubernetesDriver(api, options)))
    document = {
        **LEAST,
        "name": options.name,
        "connection": {"kubeconfig": flat(cluster.plane.kubeconfig)},
        "controlPlaneUrl": live_server.url,
    }
    cluster_apply(document=document, name=None, actor="alice", now=timezone.now())
    platform.version(1)
    platform.policy(**SHADOW)
    platform.apply(policy="shadow")
    platform.until_so(lambda: platform.view().phase == "Ready")
    platform.until_routed()
    yield platform
    platform.remove()
    api.close()


def test_answers_of_a_shadow_are_compared_and_clients_see_stable_alone(recording: OnKubernetes) -> None:
    platform = recording
    platform.version(2, content=alike(1))
    platform.version(3, content=model(3))
    with Traffic(platform.harness.gateway.url, clients=1) as traffic:
        platform.start("2", "shadow")
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        good = ComparisonRun.objects.get(rollout=platform.rollout())
        platform.start("3", "shadow")
        platform.until_so(lambda: platform.rollout().phase == "Degraded")
    assert good.report["pairs"] >= 40
    assert good.report["differing"] == 0
    assert "answers agree with stable's in 0" in platform.rollout().reason_message
    assert traffic.failures == []
    assert set(traffic.by_revision()) == {"digits-00001"}
    platform.until_so(lambda: not list(Path(platform.harness.options.payloads_folder).glob("*/*/*/*.jsonl")))


def test_requests_are_kept_without_a_restart_until_there_are_enough(recording: OnKubernetes) -> None:
    platform = recording
    (before,) = platform.seen("digits-00001").replicas
    order = RecordingOrder(CONSENT, max_requests=30)
    recording_start(namespace="default", name="digits", order=order, actor="alice", now=platform.clock())
    with Traffic(platform.harness.gateway.url, clients=1) as traffic:
        platform.until_so(lambda: Recording.objects.get().ended_at is not None)
    assert Recording.objects.get().requests == 30
    assert traffic.failures == []
    (after,) = platform.seen("digits-00001").replicas
    assert (after.name, after.started_at) == (before.name, before.started_at)


def test_a_payload_logger_tells_of_every_answer_that_clients_got(recording: OnKubernetes) -> None:
    platform = recording
    with receiving() as receiver:
        platform.apply(policy=None, logger={"url": receiver.url, "mode": "response"})
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        platform.until_ready("digits-00001", 0)
        with Traffic(platform.harness.gateway.url, clients=1) as traffic:
            platform.until_only(traffic, "digits-00002")
        platform.until_so(lambda: len(receiver.posts) >= traffic.by_revision()["digits-00002"])
    assert traffic.failures == []
    assert len(receiver.posts) == traffic.by_revision()["digits-00002"]
    assert {headers["ce-revision"] for headers, _ in receiver.posts} == {"digits-00002"}
    assert {headers["ce-type"] for headers, _ in receiver.posts} == {"org.kubeflow.serving.inference.response"}
