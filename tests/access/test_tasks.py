"""The sweep that sends keys to gateways: this machine first, and clusters whatever happens to others."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from access.tasks import push_keys
from clusters.models import Cluster
from deployments.models import InferenceService
from deployments.services import service_apply
from integrations.clusters.base import CallerKeys
from integrations.clusters.local.documents import keys_from_json
from integrations.clusters.local.files import KEYS_SCHEMA, Layout, read_json
from tests.deployments._support.platform import Platform


def _cluster(name: str) -> Cluster:
    """Return a cluster that did not answer a moment ago."""
    soon = timezone.now() + timedelta(seconds=20)
    return Cluster.objects.create(
        name=name, kind="kubernetes", created_at=timezone.now(), problem=f"{name} does not answer", look_at=soon
    )


def test_clusters_that_are_away_keep_no_other_from_its_keys(
    platform: Platform, settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings.CLUSTER_FOLDER = tmp_path / "cluster"
    platform.version(1)
    platform.policy()
    document = platform.document()
    document["spec"]["access"] = "authenticated"
    service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    InferenceService.objects.update(cluster=_cluster("east"))
    _cluster("without-such-services")
    push_keys()
    assert keys_from_json(read_json(Layout(tmp_path / "cluster").keys, KEYS_SCHEMA)) == CallerKeys()
    assert [each.getMessage() for each in caplog.records] == [
        "the keys of callers wait for cluster east: east does not answer"
    ]
