"""Models that services run are in their cluster's bucket, as long as the store answers."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from clusters.models import Cluster
from deployments.domain.service_state.desired import Role
from deployments.models import Revision
from deployments.services.model_copies import MISSING, Copier
from registry.models import ModelVersion
from registry.storage import store
from tests import scenes
from tests.integrations._support.buckets import environment, s3_bucket
from tests.servers import buckets

pytestmark = pytest.mark.django_db
FILE = {
    "kind": "kubernetes",
    "connection": {"inCluster": True},
    "gateway": {"url": "https://models.example.com", "name": "models", "namespace": "gateways"},
    "runtimeImage": "registry.example.com/serving-runtime@sha256:0",
    "controlPlaneUrl": "https://fairlead.example.com",
    "artifacts": {"from": "bucket", "bucket": "s3://models/fairlead"},
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with buckets.s3() as url:
        yield url


@pytest.fixture
def stored(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Settings) -> str:
    """Make a service whose model is stored here; returns the digest."""
    for name, value in environment({"s3": server, "gs": ""}).items():
        monkeypatch.setenv(name, value)
    s3_bucket(server)
    settings.ARTIFACTS_FOLDER = tmp_path / "artifacts"
    settings.ARTIFACTS_FOLDER.mkdir()
    with store().begin("model.onnx") as writer:
        writer.write(b"a model")
        digest = writer.commit().digest
    scenes.service()
    ModelVersion.objects.update(digest=digest)
    Cluster.objects.update(kind="kubernetes", document=FILE)
    return digest


def keys() -> list[str]:
    import boto3  # noqa: PLC0415 - its import takes a second, which others need not wait

    found = boto3.client("s3").list_objects_v2(Bucket="models").get("Contents", [])
    return [each["Key"] for each in found]


def missing() -> float:
    return float(MISSING.labels(Cluster.objects.get().name)._value.get())


def test_a_model_is_copied_once_and_again_where_the_bucket_lost_it(stored: str, server: str) -> None:
    copier, now = Copier(), timezone.now()
    copier.copy(now=now)
    (copied,) = keys()
    assert copied == f"fairlead/{stored.removeprefix('sha256:')}/model.onnx"
    assert missing() == 0
    s3_bucket(server)
    copier.copy(now=now + timedelta(minutes=5))
    assert keys() == [], "it is not listed each time"
    copier.copy(now=now + timedelta(hours=7))
    assert keys() == [copied]


def test_a_model_that_cannot_be_copied_is_counted_and_tried_again(
    stored: str, server: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    copier, now = Copier(), timezone.now()
    with monkeypatch.context() as away:
        away.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
        copier.copy(now=now)
    assert missing() == 1
    assert "s3://models/fairlead/" in caplog.text
    copier.copy(now=now)
    assert missing() == 0
    assert len(keys()) == 1


@pytest.mark.parametrize("change", [{"role": Role.RETIRED.value}, {"stopped_at": timezone.now()}])
def test_models_that_run_no_more_are_left_out(stored: str, change: dict[str, object]) -> None:
    Revision.objects.update(**change)
    Copier().copy(now=timezone.now())
    assert keys() == []


def test_other_clusters_have_no_copies(stored: str) -> None:
    Cluster.objects.update(document={**FILE, "artifacts": {"from": "registry"}})
    Copier().copy(now=timezone.now())
    assert keys() == []
