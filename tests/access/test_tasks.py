"""The sweep that sends keys to gateways: this machine first, and clusters whatever happens to others.

And the one that deletes tokens that expired long ago.
"""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import QuerySet
from django.utils import timezone
from pytest_django.fixtures import Settings

from access.models import KeyToken
from access.selectors import key_get
from access.services.keys import key_revoke, key_rotate
from access.tasks import forget_tokens, push_keys
from clusters.models import Cluster
from clusters.services.connection import PURPOSE
from common.encryption import seal
from deployments.models import InferenceService
from deployments.services import service_apply
from integrations.clusters.base import CallerKeys
from integrations.clusters.local.documents import keys_from_json
from integrations.clusters.local.files import KEYS_SCHEMA, Layout, read_json
from tests import scenes
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.platform import Platform
from usage.models import HourlyUsage
from usage.services.retention import KEPT_FOR, usage_forget


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


def _expired(token: KeyToken, ago: timedelta) -> str:
    """Let a token have expired some time ago, and have been used until then; returns its id."""
    at = timezone.now() - ago
    KeyToken.objects.filter(pk=token.pk).update(expires_at=at)
    hour = at.replace(minute=0, second=0, microsecond=0)
    HourlyUsage.objects.create(
        hour=hour, namespace="default", service="digits", key=token.key.name, token_id=token.token_id, last_at=at
    )
    return token.token_id


@pytest.mark.django_db
def test_tokens_are_deleted_with_their_usage_and_each_key_keeps_its_newest() -> None:
    now, day = timezone.now(), timedelta(days=1)
    for name in ("ci", "idle"):
        scenes.access_key(name)
    ends = {}
    for ago in (KEPT_FOR + 9 * day, KEPT_FOR - day):
        ends[ago] = _expired(KeyToken.objects.filter(key__name="ci").latest("pk"), ago)
        key_rotate(name="ci", overlap=timedelta(0), actor="test", now=now)
    of_idle = _expired(KeyToken.objects.get(key__name="idle"), KEPT_FOR + day)
    key_revoke(name="idle", actor="test", now=now)
    valid = KeyToken.objects.filter(key__name="ci").latest("pk").token_id
    usage_forget(now=now)
    used = {name: key_get(name=name).last_used_at for name in ("ci", "idle")}
    forget_tokens()
    assert set(KeyToken.objects.values_list("token_id", flat=True)) == {ends[KEPT_FOR - day], valid, of_idle}
    assert {name: key_get(name=name).last_used_at for name in used} == used
    assert used["ci"] is not None
