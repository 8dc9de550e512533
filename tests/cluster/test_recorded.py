"""Requests recorded by pods on Kubernetes: brought to a real web server with their own tokens, compared and kept."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import onnx
import pytest
from django.core.cache import cache
from django.utils import timezone
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from clusters.services.clusters import cluster_apply
from deployments.models import ComparisonRun
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.resource_types import POD
from integrations.clusters.kubernetes.driver import KubernetesDriver
from recordings.models import Recording
from recordings.services.recordings import RecordingOrder, recording_start
from serving_runtime.shared.egress import networks
from tests.cluster._support.kubeconfigs import flat
from tests.cluster._support.node.pod import Pod
from tests.cluster._support.platform import WITHIN_S, OnKubernetes
from tests.cluster.harness import Harness
from tests.deployments._support.cluster_files import LEAST
from tests.integrations._support.runtimes import Traffic, model
from tests.serving_runtime._support.event_receiver import receiving

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


def test_the_model_has_no_token_and_who_brings_its_records_has_no_model(recording: OnKubernetes) -> None:
    harness = recording.harness
    pod = harness.kubelet.pod("digits-00001")
    with harness.plane.client() as client:
        spec = client.get(POD.path("default", pod.name)).raise_for_status().json()["spec"]
    opens, reports = spec["containers"][0], next(each for each in spec["initContainers"] if each["name"] == "reports")
    assert not {"models", "cache", "artifacts"} & {each["name"] for each in reports["volumeMounts"]}
    (token,) = {path.read_bytes() for folder in folders(pod, reports) for path in folder.rglob("token")}
    assert [each["name"] for each in spec["containers"]] == ["runtime"]
    assert not any((folder / "token").exists() for folder in folders(pod, opens))
    read = {path for folder in folders(pod, opens) for path in folder.rglob("*") if path.is_file()}
    assert read
    assert not any(token in path.read_bytes() for path in read)
    process = Path("/proc", str(pod.pid("runtime")))
    assert token not in (process / "environ").read_bytes() + (process / "cmdline").read_bytes()


def test_the_last_requests_of_a_pod_are_brought_when_it_ends(recording: OnKubernetes) -> None:
    platform, harness = recording, recording.harness
    order = RecordingOrder(CONSENT, max_requests=10_000)
    recording_start(namespace="default", name="digits", order=order, actor="alice", now=platform.clock())
    url = f"{harness.gateway.url}/serving/default/digits/v2/models/digits/infer"

    def sent(first: float) -> bool:
        inputs = [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [first, 2, 3, 4]}]
        return httpx.post(url, json={"inputs": inputs}, timeout=10, trust_env=False).is_success

    platform.until_so(lambda: sent(1) and Recording.objects.get().requests > 0)
    pod = harness.kubelet.pod("digits-00001")
    assert all(sent(77_000 + number) for number in range(20))
    with harness.plane.client() as client:
        client.delete(POD.path("default", pod.name)).raise_for_status()
    pod.join(WITHIN_S)
    files = Path(harness.options.payloads_folder).glob(f"*/*/{pod.name}/*.jsonl")
    brought = "".join(path.read_text() for path in files)
    assert [number for number in range(20) if f'"data":[{77_000 + number}.0,' not in brought] == []


def folders(pod: Pod, container: dict[str, Any]) -> list[Path]:
    return [folder for _, folder in pod.folders(container)]


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
