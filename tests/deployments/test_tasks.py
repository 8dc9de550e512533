"""The sweep, with the real tasks called as functions and the cluster replaced where the driver is made."""

from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.models import Cluster
from clusters.services import connection
from deployments import tasks
from deployments.models import InferenceService
from deployments.services import service_apply
from deployments.turns import sweep
from integrations.clusters.base import Component
from tests.deployments._support.platform import Platform


@pytest.fixture
def swept(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> Platform:
    monkeypatch.setattr(connection, "driver_of", lambda _cluster: platform.cluster)
    monkeypatch.setattr(sweep.counters, "collect", platform.metrics)
    return platform


def _services(platform: Platform, count: int) -> list[InferenceService]:
    platform.version(1)
    for index in range(count):
        document = platform.document(policy=None)
        document["metadata"] = {"name": f"digits-{index}"}
        service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    return list(InferenceService.objects.order_by("name"))


def test_a_sweep_ticks_every_service_that_had_none_lately(swept: Platform) -> None:
    services = _services(swept, 3)
    soon = timezone.now() + timedelta(minutes=1)  # however slow this machine is, that is not long ago
    InferenceService.objects.filter(pk=services[1].pk).update(ticked_at=soon)
    tasks.sweep()
    assert {desired.service for desired in swept.cluster.applied} == {"digits-0", "digits-2"}
    assert not InferenceService.objects.filter(ticked_at=None).exists()
    InferenceService.objects.update(ticked_at=soon)
    tasks.sweep()
    assert len(swept.cluster.applied) == 2, "both had a tick just now"


def test_a_service_that_another_worker_has_is_left_to_it(swept: Platform) -> None:
    _services(swept, 2)
    InferenceService.objects.filter(name="digits-0").update(
        lease_owner="another", lease_expires_at=timezone.now() + timedelta(seconds=20)
    )
    tasks.sweep()
    assert [desired.service for desired in swept.cluster.applied] == ["digits-1"]


def test_the_trouble_of_one_service_does_not_keep_others_waiting(
    swept: Platform, caplog: pytest.LogCaptureFixture
) -> None:
    _services(swept, 2)

    def fail(desired: object) -> None:
        if getattr(desired, "service", "") == "digits-0":
            raise RuntimeError("a fault of ours")

    swept.cluster.on_apply = fail
    tasks.sweep()
    assert [desired.service for desired in swept.cluster.applied] == ["digits-1"]
    assert "the tick of service" in caplog.text
    assert InferenceService.objects.get(name="digits-0").lease_owner == ""


def test_a_cluster_that_is_away_is_logged_and_shown(swept: Platform, caplog: pytest.LogCaptureFixture) -> None:
    [service] = _services(swept, 1)
    swept.cluster.away = "the local agent has not run here"
    tasks.sweep()
    service.refresh_from_db()
    assert service.reason == "the cluster cannot be read: the local agent has not run here"
    assert "waits for its cluster: the local agent has not run here" in caplog.text


def test_a_sweep_makes_the_cluster_and_notes_restarts_of_its_parts(swept: Platform) -> None:
    swept.cluster.components = (Component("gateway", ready=True, restarts=1),)
    tasks.sweep()
    assert Cluster.objects.get().components["gateway"]["restarts"] == 1


def test_a_hint_for_a_service_that_is_gone_is_nothing(swept: Platform) -> None:
    tasks.reconcile(4711)
    assert swept.cluster.applied == []


def test_a_hint_ticks_its_service(swept: Platform) -> None:
    services = _services(swept, 2)
    tasks.reconcile(services[1].pk)
    assert [desired.service for desired in swept.cluster.applied] == ["digits-1"]
