"""Builds over the API, and what pods of theirs bring."""

import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from deployments.api.workloads import access
from integrations.clusters.base import JobIdentity, WorkloadIdentity
from jobs.services.claim import begin
from jobs.services.claim_renewal import LEASE
from model_jobs.builds.services import BUILD
from model_jobs.models import Build
from registry.storage import store
from tests import scenes
from tests.deployments._support.fakes import FakeCluster

pytestmark = pytest.mark.django_db(transaction=True)
Api = Callable[..., APIClient]
URL = "/api/v1/models/digits/versions/1/builds"


@pytest.fixture(autouse=True)
def service() -> None:
    scenes.service()


def test_start_look_and_stop(api: Api) -> None:
    order = {"target": "tensorrt", "precision": "int8", "profiles": ["x:1x8:4x8:16x8"], "accelerator": "nvidia.com/gpu"}
    started = api(Scope.WRITE).post(URL, order, format="json")
    assert started.status_code == 202, started.json()
    shown = started.json()
    assert (shown["status"], shown["version"], shown["built"], shown["report"]) == ("PENDING", 1, None, {})
    assert shown["order"]["profiles"] == ["x:1x8:4x8:16x8"]
    assert api(Scope.READ).get(f"{URL}/{shown['id']}").json() == shown
    assert api(Scope.WRITE).delete(f"{URL}/{shown['id']}").status_code == 204
    assert api(Scope.READ).get(URL).json()["results"][0]["reason"] == "somebody stopped it"
    assert api(Scope.WRITE).delete(f"{URL}/{shown['id']}").status_code == 409
    assert api(Scope.READ).get(f"{URL}/999").status_code == 404
    assert AuditEntry.objects.filter(action__startswith="build.").count() == 2


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        pytest.param({"precision": "fp32"}, 400, "precision", id="nothing to do"),
        pytest.param({"precision": "int4"}, 400, "precision", id="unknown precision"),
        pytest.param({"target": "tensorrt", "profiles": ["x"]}, 400, "profiles", id="no profile"),
        pytest.param({"target": "tensorrt", "accelerator": "example.com/npu"}, 400, "accelerator", id="no GPU"),
        pytest.param({"target": "tensorrt", "products": ["a b"]}, 400, None, id="no label"),
        pytest.param({"service": "digits"}, 400, "service", id="no namespace"),
        pytest.param({"service": "default/cats"}, 404, None, id="unknown service"),
        pytest.param({"service": "default/digits"}, 409, None, id="a service without a GPU"),
        pytest.param({"precission": "int8"}, 400, "precission", id="misspelt"),
    ],
)
def test_what_cannot_be_built_is_refused(api: Api, body: dict[str, object], status: int, field: str | None) -> None:
    answer = api(Scope.WRITE).post(URL, body, format="json")
    assert answer.status_code == status, answer.json()
    assert field is None or answer.json()["error"]["field"] == field


def test_the_number_of_queries_does_not_depend_on_how_many_there_are(api: Api) -> None:
    reader = api(Scope.READ)
    reader.get(URL)  # the token's first use is noted
    counts = []
    for _ in range(2):
        api(Scope.WRITE).post(URL, {}, format="json")
        with CaptureQueriesContext(connection) as counted:
            assert reader.get(URL).status_code == 200
        counts.append(len(counted))
    assert counts[0] == counts[1]


class Pods:
    """A build that is made, and pods with tokens."""

    def __init__(self, api: Api) -> None:
        api(Scope.WRITE).post(URL, {"precision": "int8"}, format="json")
        self.row = Build.objects.get()
        claim = begin(BUILD, self.row.pk, now=timezone.now(), lease=LEASE)
        assert claim is not None
        self.result_id = str(claim.id)
        digest = self.row.model_version.digest
        self.cluster = FakeCluster(
            workloads={
                "pod.of.build": JobIdentity("fairlead-jobs", "fairlead-build-abc", digest, self.result_id),
                "pod.of.inspect": JobIdentity("fairlead-jobs", "fairlead-inspect-abc", digest),
                "pod.of.service": WorkloadIdentity("default", "digits", "digits-1-abc"),
            }
        )

    def put(self, body: bytes, token: str = "pod.of.build", *, cluster: str = "local", **headers: str) -> Any:
        return Client().put(
            f"/api/v1/clusters/{cluster}/workloads/results/{self.result_id}",
            body,
            content_type="application/octet-stream",
            headers={"Authorization": f"Bearer {token}", **headers},
        )


@pytest.fixture
def pods(api: Api, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pods]:
    settings.ARTIFACTS_FOLDER = tmp_path / "artifacts"
    cache.clear()
    made = Pods(api)
    monkeypatch.setattr(access, "driver_of", lambda _row: made.cluster)
    yield made
    cache.clear()


def archive(**files: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as packed:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"1/{name}.onnx")
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def test_what_was_built_is_kept_and_the_same_again_once(pods: Pods) -> None:
    for _ in range(2):
        assert pods.put(archive(model=b"built")).status_code == 204
    pods.row.refresh_from_db()
    assert (store().path_of(pods.row.digest) / "1" / "model.onnx").read_bytes() == b"built"
    assert pods.row.size_bytes == 5


@pytest.mark.parametrize(
    ("token", "cluster", "status"),
    [
        pytest.param("pod.of.inspect", "local", 404, id="a job that makes nothing"),
        pytest.param("pod.of.service", "local", 403, id="a replica"),
        pytest.param("not.a.known", "local", 401, id="nobody"),
        pytest.param("pod.of.build", "elsewhere", 401, id="another cluster"),
    ],
)
def test_nobody_else_brings_anything(pods: Pods, token: str, cluster: str, status: int) -> None:
    assert pods.put(archive(model=b"built"), token, cluster=cluster).status_code == status
    pods.row.refresh_from_db()
    assert pods.row.digest == ""


def test_what_is_no_models_folder_is_refused(pods: Pods) -> None:
    assert pods.put(b"garbage").status_code == 400
    assert pods.put(archive(other=b"")[:100]).status_code == 400
    assert pods.put(archive(model=b"built"), **{"X-Content-SHA256": "0" * 64}).status_code == 400


def test_what_is_not_waited_for_any_more_is_refused(pods: Pods) -> None:
    Build.objects.update(status="FAILED", claim=None)
    assert pods.put(archive(model=b"built")).status_code == 404


def test_a_job_gets_the_ready_model_that_it_builds_on(pods: Pods, settings: Settings) -> None:
    with store().begin("model.onnx") as writer:
        writer.write(b"a model")
        stored = writer.commit()
    version = pods.row.model_version
    version.digest = stored.digest
    version.save()
    identity = JobIdentity("fairlead-jobs", "fairlead-build-abc", stored.digest, pods.result_id)
    pods.cluster.workloads["pod.of.build"] = identity
    address = f"/api/v1/clusters/local/workloads/artifacts/{stored.digest}"
    ask = {"headers": {"Authorization": "Bearer pod.of.build"}}
    assert Client().get(address, **ask).status_code == 200
    Build.objects.update(status="DONE")
    assert Client().get(address, **ask).status_code == 404
