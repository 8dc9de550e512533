"""Which services a sweep turns to, by the rows that real turns leave, and what makes a settled one due at once."""

import time
from datetime import timedelta

import pytest
from django.db.models import F

from clusters.services import connection
from clusters.services.clusters import cluster_apply
from deployments import tasks
from deployments.domain.service_state.quiescence import RESYNC_EVERY, TOUCHED, UNSETTLED
from deployments.models import InferenceService
from deployments.reconcile import lease, schedule
from deployments.reconcile.schedule import (
    RESYNC_PER_S,
    UNREPORTED_PER_S,
    interleaved,
    is_watched,
    most_settled,
    services_due,
)
from deployments.services import service_restart
from deployments.turns import sweep
from registry.services import alias_delete, alias_set
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.platform import Platform

EVERY = timedelta(seconds=2)


def _is_settled() -> bool:
    return InferenceService.objects.filter(settled=F("changes")).exists()


def _live(platform: Platform) -> InferenceService:
    service = platform.live()
    platform.until(_is_settled)
    return service


def _copies(service: InferenceService, count: int) -> None:
    """Make rows like the service's, each with a tick a little later than the one before."""
    fields = {field.attname: getattr(service, field.attname) for field in service._meta.concrete_fields}
    del fields["id"], fields["changed_at"]
    at = service.ticked_at
    assert at is not None
    InferenceService.objects.bulk_create(
        InferenceService(**{**fields, "name": f"copy-{index:04}", "ticked_at": at + timedelta(milliseconds=index)})
        for index in range(count)
    )


def _due(service: InferenceService, *, reports_events: bool = True) -> list[int]:
    assert service.ticked_at is not None
    now = service.ticked_at + timedelta(minutes=1)
    return services_due(service.cluster, now=now, interval=EVERY, reports_events=reports_events)


@pytest.mark.parametrize(
    ("moving", "settled", "order"),
    [
        pytest.param([], [], "", id="nothing"),
        pytest.param([1, 2, 3], [], "123", id="nothing settled"),
        pytest.param([], [7, 8], "78", id="nothing that moves"),
        pytest.param([1, 2, 3, 4], [7, 8], "127348", id="one settled after every two that move"),
        pytest.param([1], [7, 8, 9], "1789", id="one that moves among settled ones"),
    ],
)
def test_settled_ones_come_in_between(moving: list[int], settled: list[int], order: str) -> None:
    assert sorted(interleaved(moving, settled)) == sorted([*moving, *settled])
    assert "".join(map(str, interleaved(moving, settled))) == order


def test_the_rate_of_settled_ones_is_bounded_and_higher_where_nobody_tells_what_happens() -> None:
    assert most_settled(EVERY, reports_events=True) == 2 * RESYNC_PER_S
    assert most_settled(EVERY, reports_events=False) == 2 * UNREPORTED_PER_S
    assert most_settled(timedelta(milliseconds=1), reports_events=True) == 1


@pytest.mark.parametrize(
    ("watch", "told"),
    [
        pytest.param({}, False, id="nobody watches"),
        pytest.param({"streaming": 3, "total": 3, "seen_at": "2026-01-01T12:00:00+00:00"}, True, id="all stream"),
        pytest.param({"streaming": 2, "total": 3, "seen_at": "2026-01-01T12:00:00+00:00"}, False, id="one does not"),
        pytest.param({"streaming": 0, "total": 0, "seen_at": "2026-01-01T12:00:00+00:00"}, False, id="there is none"),
        pytest.param({"streaming": 3, "total": 3, "seen_at": "2026-01-01T11:59:00+00:00"}, False, id="long ago"),
    ],
)
def test_a_cluster_is_watched_where_every_watch_streams(
    platform: Platform, watch: dict[str, object], *, told: bool
) -> None:
    assert is_watched(watch, platform.clock.now) is told


def test_a_service_is_due_at_every_sweep_until_nothing_of_it_goes_on(platform: Platform) -> None:
    platform.version(1)
    service = platform.apply(policy=None)
    for _ in range(2):
        platform.turn(settle=False)
        service.refresh_from_db()
        assert service.settled == UNSETTLED, "its replica is not ready"
    platform.until(_is_settled)


def test_a_rollout_is_due_until_its_old_revision_has_gone(platform: Platform) -> None:
    _live(platform)
    platform.promoted()
    assert not _is_settled()
    platform.until(_is_settled)
    assert [each.role for each in platform.view().revisions] == ["stable"]


def test_of_many_settled_services_only_so_many_are_due_the_oldest_first(platform: Platform) -> None:
    service = _live(platform)
    _copies(service, 60)
    service.refresh_from_db()
    moving = InferenceService.objects.get(name="copy-0050")
    InferenceService.objects.filter(pk=moving.pk).update(settled=UNSETTLED)

    found = _due(service)

    assert len(found) == most_settled(EVERY, reports_events=True) + 1
    assert found[0] == service.pk or found[0] == moving.pk
    names = dict(InferenceService.objects.values_list("pk", "name"))
    assert sorted(names[pk] for pk in found if pk not in (service.pk, moving.pk)) == [
        f"copy-{index:04}" for index in range(39)
    ]
    assert len(_due(service, reports_events=False)) == 61, "where nobody tells, all of so few"


def test_few_settled_services_are_due_every_half_minute_or_at_every_sweep_where_nobody_reports(
    platform: Platform,
) -> None:
    service = _live(platform)
    service.refresh_from_db()
    assert service.ticked_at is not None

    def due_after(wait: timedelta, *, reports_events: bool) -> bool:
        assert service.ticked_at is not None
        now = service.ticked_at + wait
        return bool(services_due(service.cluster, now=now, interval=EVERY, reports_events=reports_events))

    assert not due_after(EVERY, reports_events=True)
    assert not due_after(RESYNC_EVERY - EVERY, reports_events=True)
    assert due_after(RESYNC_EVERY, reports_events=True)
    assert not due_after(EVERY / 4, reports_events=False), "it had a tick just now"
    assert due_after(EVERY, reports_events=False)


def test_a_sweep_ticks_as_many_whatever_the_number_of_settled_services(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = _live(platform)
    platform.cluster.touched_at.clear()
    ticked: list[int] = []
    monkeypatch.setattr(connection, "driver_of", lambda _cluster: platform.cluster)
    monkeypatch.setattr(sweep, "turn", lambda service_id, _driver: ticked.append(service_id))
    counts = []
    for more in (100, 400):
        InferenceService.objects.exclude(pk=service.pk).delete()
        service.refresh_from_db()
        _copies(service, more)
        ticked.clear()
        tasks.sweep()
        counts.append(len(ticked))
    assert counts == [most_settled(EVERY, reports_events=True)] * 2


def test_a_change_by_somebody_is_due_at_once(platform: Platform) -> None:
    service = _live(platform)
    service_restart(namespace="default", name="digits", actor="alice", now=platform.clock())
    assert not _is_settled()
    assert _due(InferenceService.objects.get(pk=service.pk)) == [service.pk]


def test_a_change_by_a_version_before_that_knows_no_such_column_is_due_too(platform: Platform) -> None:
    service = _live(platform)
    InferenceService.objects.filter(pk=service.pk).update(changes=F("changes") + 1)
    assert not _is_settled()


def test_what_the_cluster_tells_during_a_turn_is_not_lost(platform: Platform) -> None:
    service = _live(platform)

    def touched(_desired: object) -> None:
        schedule.touch(InferenceService.objects.filter(pk=service.pk))

    platform.cluster.on_apply = touched
    platform.turn()
    service.refresh_from_db()
    assert service.settled == TOUCHED
    platform.cluster.on_apply = lambda _desired: None
    platform.turn()
    assert _is_settled()


def test_a_turn_that_was_killed_leaves_the_service_due(platform: Platform) -> None:
    service = _live(platform)
    assert lease.take(service.pk, platform.clock())
    assert not _is_settled()


def test_an_alias_that_moves_or_goes_makes_the_services_of_its_model_due(platform: Platform) -> None:
    version = platform.version(1)
    platform.alias(version)
    platform.version(2)
    platform.apply(uri="models:/digits@champion", policy=None)
    platform.until(_is_settled)
    alias_set(model="digits", name="champion", number=2, now=platform.clock(), actor="alice")
    assert not _is_settled()
    platform.until(lambda: platform.view().model_version == 2)
    platform.until(_is_settled)
    alias_delete(model="digits", name="champion", now=platform.clock(), actor="alice")
    assert not _is_settled()


def test_a_new_cluster_file_makes_its_services_due(platform: Platform) -> None:
    kubeconfig = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "robot", "user": {"token": "secret"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "robot"}}],
    }
    file = {**LEAST, "connection": {"kubeconfig": kubeconfig}}
    cluster, _ = cluster_apply(document=file, name=None, actor="alice", now=platform.clock())
    service = _live(platform)
    InferenceService.objects.filter(pk=service.pk).update(cluster=cluster)
    cluster_apply(document=file, name=None, actor="alice", now=platform.clock())
    assert _is_settled(), "the same file again says nothing new"
    cluster_apply(document={**file, "domain": "models.example.org"}, name=None, actor="alice", now=platform.clock())
    assert not _is_settled()


def test_what_the_cluster_names_is_due_at_the_next_sweep(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    service = _live(platform)
    _copies(service, 200)
    monkeypatch.setattr(connection, "driver_of", lambda _cluster: platform.cluster)
    monkeypatch.setattr(sweep.counters, "collect", platform.metrics)
    ticked: list[int] = []
    monkeypatch.setattr(sweep, "turn", lambda service_id, _driver: ticked.append(service_id))
    platform.cluster.touched_at = {("default", "copy-0199"): time.time()}
    tasks.sweep()
    assert InferenceService.objects.get(name="copy-0199").pk in ticked
    assert len(ticked) == most_settled(EVERY, reports_events=True) + 1
