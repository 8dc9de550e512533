"""The sweep that sends keys to gateways: this machine first, and clusters whatever happens to others."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import QuerySet
from django.utils import timezone
from pytest_django.fixtures import Settings

from access.tasks import push_keys
from clusters.models import Cluster
from clusters.services.connection import PURPOSE
from common.encryption import seal
from deployments.models import InferenceService
from deployments.services import service_apply
from integrations.clusters.base import CallerKeys
from integrations.clusters.local.documents import keys_from_json
from integrations.clusters.local.files import KEYS_SCHEMA, Layout, read_json
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.platform import Platform


def _cluster(name: str) -> Cluster:
    """Return a cluster that did not answer a moment ago."""
    soon = timezone.now() + timedelta(seconds=20)
    return Cluster.objects.create(
        name=name, kind="kubernetes", created_at=timezone.now(), problem=f"{name} does not answer", look_at=soon
    )


@pytest.fixture
def guarded(platform: Platform, settings: Settings, tmp_path: Path) -> QuerySet[InferenceService]:
    """Return the one service, which is not public."""
    settings.CLUSTER_FOLDER = tmp_path / "cluster"
    platform.version(1)
    platform.policy()
    document = platform.document()
    document["spec"]["access"] = "authenticated"
    service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    return InferenceService.objects.all()


def test_clusters_that_are_away_keep_no_other_from_its_keys(
    guarded: QuerySet[InferenceService], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guarded.update(cluster=_cluster("east"))
    _cluster("without-such-services")
    push_keys()
    assert keys_from_json(read_json(Layout(tmp_path / "cluster").keys, KEYS_SCHEMA)) == CallerKeys()
    assert [each.getMessage() for each in caplog.records] == [
        "the keys of callers wait for cluster east: east does not answer"
    ]


def test_a_fault_in_one_cluster_keeps_no_other_from_its_keys(
    guarded: QuerySet[InferenceService], caplog: pytest.LogCaptureFixture
) -> None:
    of_a_later_release = json.dumps({"server": "https://10.0.0.1", "unknown": ""})
    guarded.update(
        cluster=Cluster.objects.create(
            name="east",
            kind="kubernetes",
            created_at=timezone.now(),
            document={**LEAST, "name": "east", "connection": {"kubeconfig": "stored"}},
            credentials=seal(of_a_later_release, purpose=PURPOSE),
        )
    )
    push_keys()
    assert [each.getMessage() for each in caplog.records] == ["the keys of callers cannot be sent to cluster east"]
