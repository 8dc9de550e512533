"""Pods of the real runtime fetch their models: from the control plane with tokens of their own, out of a cache, and
from where a version was imported from.
"""

import base64
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from django.core.cache import cache
from django.core.signals import request_started
from django.utils import timezone
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from clusters.models import Cluster
from clusters.services.clusters import cluster_apply
from clusters.services.connection import driver_of
from integrations.artifacts.archives import Member
from jobs.services import run_claim
from model_jobs.builds.domain.order import BuildOrder
from model_jobs.builds.services import BUILD, build_start
from model_jobs.models import Build
from model_jobs.trials.services import TRIAL, trial_start
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion, RegisteredModel
from registry.tasks import check_version
from tests.cluster._support.kubeconfigs import flat
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import CACHE, IMAGE, Harness
from tests.integrations._support.buckets import environment, s3_bucket
from tests.integrations._support.runtimes import model
from tests.servers import buckets

pytestmark = pytest.mark.cluster
Begin = Callable[..., "Fetching"]


@dataclass
class Fetching(OnKubernetes):
    """The platform with a cluster whose pods fetch; `asked` has each request for model files, by its address."""

    asked: list[str] = field(default_factory=list)

    def document(self, *args: Any, **more: Any) -> dict[str, Any]:
        made = super().document(*args, **more)
        made["spec"]["cluster"] = "production"
        return made

    def message(self) -> str:
        return " ".join(replica.message for replica in self.seen("digits-00001").replicas)


@pytest.fixture
def begin(transactional_db: None, cluster: Harness, live_server: LiveServer, settings: Settings) -> Iterator[Begin]:
    """Return what makes the platform, given `artifacts` of the cluster's file."""
    settings.ARTIFACTS_FOLDER = cluster.artifacts.folder
    made: list[Fetching] = []
    asked: list[str] = []

    def note(environ: dict[str, str], **_more: object) -> None:
        if "/workloads/artifacts/" in environ["PATH_INFO"]:
            asked.append(environ["PATH_INFO"])

    def make(artifacts: dict[str, Any], **more: Any) -> Fetching:
        platform = Fetching(harness=cluster, asked=asked)
        gateway = cluster.gateway.reference
        file = {
            "name": "production",
            "kind": "kubernetes",
            "connection": {"kubeconfig": flat(cluster.plane.kubeconfig)},
            "gateway": {"url": cluster.gateway.url, "name": gateway.name, "namespace": gateway.namespace},
            "runtimeImage": IMAGE,
            "artifacts": artifacts,
            "jobs": {"namespace": "default"},
            "controlPlaneUrl": live_server.url,
            "drain": "5s",
            "preStop": "1s",
            **more,
        }
        row, _ = cluster_apply(document=file, name=None, actor="alice", now=platform.clock())
        platform.harness = replace(cluster, driver=driver_of(row))
        made.append(platform)
        return platform

    cache.clear()
    request_started.connect(note)
    yield make
    for platform in made:
        platform.remove()
    request_started.disconnect(note)
    cache.clear()


def test_pods_that_share_a_cache_make_one_request(begin: Begin) -> None:
    platform = begin({"from": "registry", "cache": {"claim": CACHE, "size": "1Gi"}})
    version = platform.version(1)
    platform.apply(policy=None, replicas=2)
    platform.until_ready("digits-00001", 2)
    platform.until_routed()
    assert platform.asked == [f"/api/v1/clusters/production/workloads/artifacts/{version.digest}"]
    platform.delete_pod("digits-00001")
    platform.until_ready("digits-00001", 2)
    assert len(platform.asked) == 1


def test_a_model_that_was_changed_is_refused_in_one_sentence_and_served_once_it_is_right(
    begin: Begin, cluster: Harness
) -> None:
    platform = begin({"from": "registry"})
    digest = platform.version(1).digest
    (file,) = cluster.artifacts.path_of(digest).iterdir()
    right = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(right[:-1] + b"?")
    platform.apply(policy=None)
    platform.until_so(lambda: "is not the model that was registered" in platform.message())
    sentence = f"what was fetched is not the model that was registered: expected {digest}, found "
    assert platform.message().startswith(f"prepare ended with exit code 2: {sentence}")
    file.write_bytes(right)
    platform.until_ready("digits-00001", 1)


def test_a_version_is_checked_on_a_cluster_without_a_claim(begin: Begin, settings: Settings) -> None:
    platform = begin({"from": "registry"})
    settings.DEFAULT_CLUSTER = "production"
    version = platform.version(1)
    now = timezone.now()
    ModelVersion.objects.update(status=Status.PENDING.value, signature={}, profile={}, next_check_at=now, claim=None)
    check_version(version.pk)
    version.refresh_from_db()
    assert (version.status, version.reason) == (Status.READY.value, "")
    assert [each["name"] for each in version.signature["inputs"]] == ["x"]
    assert version.profile
    assert platform.asked == [f"/api/v1/clusters/production/workloads/artifacts/{version.digest}"] * 2


def test_a_version_is_built_in_a_pod_that_brings_it_back(begin: Begin, cluster: Harness, settings: Settings) -> None:
    platform = begin({"from": "registry"})
    settings.DEFAULT_CLUSTER = "production"
    version = with_calibration(platform, cluster)
    row = build({"precision": "int8"})
    assert (row.status, row.reason) == ("DONE", "")
    assert row.version is not None
    assert row.version.number == version.number + 1
    assert row.version.lineage["built_from"] == "models:/digits/1"
    check_version(row.version.pk)
    row.version.refresh_from_db()
    assert (row.version.status, row.version.reason) == (Status.READY.value, "")
    assert [each["name"] for each in row.version.signature["inputs"]] == ["x"]


def test_a_request_is_answered_in_a_pod_whose_first_container_fetches_it(
    begin: Begin, cluster: Harness, settings: Settings
) -> None:
    platform = begin({"from": "registry"})
    settings.DEFAULT_CLUSTER = "production"
    stored = cluster.store(model(3))
    platform.version(1)
    ModelVersion.objects.update(digest=stored.digest, artifact_uri=stored.uri)
    RegisteredModel.objects.update(latest_number=1)
    row = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
    trial = trial_start(model="digits", number=1, request=row, actor="alice", now=timezone.now())
    run_claim.run(TRIAL, trial.pk, lambda cluster_id: driver_of(Cluster.objects.get(pk=cluster_id)), clock=timezone.now)
    trial.refresh_from_db()
    assert (trial.status, trial.reason) == ("DONE", "")
    assert json.loads(trial.answer)["outputs"][0]["data"] == [3, 6, 9, 12]


def test_a_plan_that_cannot_be_built_is_told_in_the_pods_words(
    begin: Begin, cluster: Harness, settings: Settings
) -> None:
    platform = begin({"from": "registry"})
    settings.DEFAULT_CLUSTER = "production"
    platform.version(1)
    row = build({"target": "tensorrt"})
    assert (row.status, row.version) == ("FAILED", None)
    assert row.reason.startswith("a plan is built on the GPU that is to run it, and this process has none: ")


def test_a_plan_is_built_on_a_node_that_has_the_slice(begin: Begin, cluster: Harness, settings: Settings) -> None:
    platform = begin({"from": "registry"}, gpuRuntimeImage=IMAGE)
    settings.DEFAULT_CLUSTER = "production"
    platform.version(1)
    order = {"target": "tensorrt", "accelerator": "nvidia.com/mig-1g.10gb", "timeout_s": 30}
    row = build(order)
    assert row.status == "FAILED"
    assert "did not finish within 30 s: no node takes it: " in row.reason
    assert "nvidia.com/mig-1g.10gb" in row.reason


def with_calibration(platform: Fetching, cluster: Harness) -> ModelVersion:
    """Return a READY version whose folder has rows to quantize by."""
    rows = io.BytesIO()
    np.savez(rows, x=np.random.default_rng(1).normal(size=(16, 4)).astype("f4"))
    files = {"1/model.onnx": model(3), "calibration.npz": rows.getvalue()}
    stored = cluster.artifacts.put_folder(
        [Member(name, io.BytesIO(each)) for name, each in files.items()], owner="test"
    )
    version = platform.version(1)
    version.digest, version.artifact_uri = stored.digest, stored.uri
    version.save()
    RegisteredModel.objects.update(latest_number=1)
    return version


def build(order: dict[str, Any]) -> Build:
    """Return the end of a build of version 1."""
    asked = BuildOrder.from_json(order)
    row = build_start(model="digits", number=1, service=None, order=asked, actor="alice", now=timezone.now())
    run_claim.run(BUILD, row.pk, lambda cluster_id: driver_of(Cluster.objects.get(pk=cluster_id)), clock=timezone.now)
    row.refresh_from_db()
    return row


def test_pods_fetch_from_a_bucket_with_a_secrets_credentials(begin: Begin, cluster: Harness) -> None:
    with buckets.s3() as url, cluster.plane.client() as client:
        said = environment({"s3": url, "gs": ""})
        with pytest.MonkeyPatch.context() as own:  # pods inherit what stays in this process' environment
            for name, value in said.items():
                own.setenv(name, value)
            s3_bucket(url).put("digits/model.onnx", model(1))
        secret = {name: base64.b64encode(value.encode()).decode() for name, value in said.items() if value}
        secrets = "/api/v1/namespaces/default/secrets"
        client.post(secrets, json={"metadata": {"name": "bucket"}, "data": secret}).raise_for_status()
        try:
            platform = begin({"from": "origin", "originSecret": "bucket"})
            platform.version(1)
            ModelVersion.objects.update(lineage={"source_uri": "s3://models/digits/model.onnx"})
            platform.apply(policy=None)
            platform.until_ready("digits-00001", 1)
            platform.until_routed()
            assert platform.asked == []
            platform.remove()
        finally:
            client.delete(f"{secrets}/bucket").raise_for_status()
