"""What is done with the token of who brings records, were it taken: it brings what replicas record, nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from deployments.api.workloads import access, exchanges
from deployments.models import Revision
from integrations.clusters.base import WorkloadIdentity
from registry.models import ModelVersion
from tests import scenes
from tests.deployments._support.fakes import FakeCluster
from tests.deployments._support.workloads import cluster_of, stored_model

pytestmark = pytest.mark.django_db
ID = "00000000-0000-4000-8000-000000000000"
STOLEN, FETCHES = "pod.of.reports", "pod.of.prepare"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    """Give a cluster that knows both tokens of one pod."""
    pod = "default", "digits", "digits-00001-abc"
    workloads = {STOLEN: WorkloadIdentity(*pod, records_only=True), FETCHES: WorkloadIdentity(*pod)}
    with cluster_of(monkeypatch, workloads, [access, exchanges]) as fake:
        yield fake


@pytest.fixture
def digest(settings: Settings, tmp_path: Path) -> str:
    """Return the digest of the service's own model."""
    found = stored_model(settings, tmp_path, b"a model")
    scenes.service("digits", 1)
    ModelVersion.objects.update(digest=found)
    Revision.objects.update(artifact_digest=found)
    return found


def call(method: str, path: str, token: str, **more: Any) -> Any:
    ask = getattr(Client(), method)
    return ask(f"/api/v1/clusters/local/workloads/{path}", headers={"Authorization": f"Bearer {token}"}, **more)


def test_it_fetches_no_model(cluster: FakeCluster, digest: str) -> None:
    answer = call("get", f"artifacts/{digest}", STOLEN)
    assert answer.status_code == 403
    assert "is for what it records, and fetches no model" in answer.json()["error"]["message"]
    assert call("get", f"artifacts/{digest}", FETCHES).status_code == 200


def test_it_fetches_no_request_and_brings_no_result(cluster: FakeCluster, digest: str) -> None:
    assert call("get", f"requests/{ID}", STOLEN).status_code == 403
    assert call("put", f"results/{ID}", STOLEN, data=b"", content_type="application/octet-stream").status_code == 403


def test_it_brings_what_its_replica_recorded(cluster: FakeCluster, digest: str) -> None:
    events = json.dumps([{"id": "1"}])
    answer = call("post", "exchanges", STOLEN, data=events, content_type="application/cloudevents-batch+json")
    assert answer.status_code == 204
    assert [(workload.service, body) for workload, body in cluster.brought] == [("digits", events.encode())]
