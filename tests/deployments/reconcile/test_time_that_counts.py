"""Time counts for a rollout's holds and deadlines while its cluster is observed, however far apart its turns are."""

from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.domain.unseen import PLANNED
from clusters.models import Cluster
from common.errors import Unavailable
from deployments.models import Rollout
from deployments.reconcile.restarts import note_components, note_look, note_silence
from integrations.clusters.base import Nodes
from tests.deployments._support.platform import Platform

SWEEP_S = 20
HOLD = timedelta(seconds=10)


def observe(platform: Platform, seconds: float) -> None:
    """Let time pass in which sweeps observe the cluster and do not get to the service."""
    while seconds > 0:
        passed = min(SWEEP_S, seconds)
        platform.clock.go_on(passed)
        note_look(Cluster.objects.get(), Nodes(), now=platform.clock())
        seconds -= passed


def turns_until(platform: Platform, phase: str, *, apart_s: float) -> list[Rollout]:
    """Return the rollout after each turn, until it is in the phase."""
    seen = []
    for _ in range(80):
        platform.traffic(round(400 + 20 * apart_s))
        observe(platform, apart_s)
        platform.turn(seconds=0)
        seen.append(platform.rollout())
        if seen[-1].phase == phase:
            return seen
    pytest.fail(f"not {phase} after 80 turns {apart_s} s apart: {platform.rollout().reason_message}")


@pytest.mark.parametrize("apart_s", [2, 20, 59, 60, 61, 300])
@pytest.mark.django_db
def test_a_rollout_gets_healthy(platform: Platform, apart_s: float) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    seen = turns_until(platform, "Healthy", apart_s=apart_s)
    held = [each for each in seen if each.reason_code == "Holding"]
    assert len(held) <= 2 * (HOLD.total_seconds() / apart_s + 1), "each hold ends at the first turn after it is over"


@pytest.mark.parametrize("apart_s", [2, 20, 59, 60, 61, 300])
@pytest.mark.django_db
def test_a_canary_that_never_starts_is_degraded_at_its_deadline(platform: Platform, apart_s: float) -> None:
    platform.live()
    platform.version(2)
    platform.cluster.broken["digits-00002"] = "no such operator"
    platform.start()
    began = platform.clock()
    turns_until(platform, "Degraded", apart_s=apart_s)
    assert platform.rollout().reason_code == "ProgressDeadlineExceeded"
    waited = platform.clock() - began
    assert timedelta(minutes=2) <= waited <= timedelta(minutes=2, seconds=3 * apart_s)


@pytest.mark.parametrize("is_noted", [True, False])
@pytest.mark.django_db
def test_a_night_without_the_control_plane_is_passed_over(platform: Platform, is_noted: bool) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(lambda: platform.rollout().confirmed_at is not None)
    observe(platform, 2)
    platform.turn(seconds=0)
    before = platform.rollout().confirmed_at
    assert before is not None
    night = timedelta(hours=8)
    platform.clock.go_on(night.total_seconds())
    if is_noted:
        note_components(cluster_id=Cluster.objects.get().pk, nodes=Nodes(), now=platform.clock())
    platform.turn(seconds=0)
    assert platform.rollout().confirmed_at == before + night - PLANNED
    platform.turn(seconds=2)
    assert platform.rollout().confirmed_at == before + night - PLANNED, "once"


@pytest.mark.django_db
def test_a_time_in_which_the_service_could_not_be_read_is_passed_over(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(lambda: platform.rollout().confirmed_at is not None)
    before = platform.rollout().confirmed_at
    assert before is not None
    seen_at = platform.rollout().service.seen_at
    assert seen_at is not None
    platform.cluster.away = "no route"
    for _ in range(9):
        observe(platform, 20)
        with pytest.raises(Unavailable):
            platform.turn(seconds=0)
    platform.cluster.away = ""
    observe(platform, 20)
    platform.turn(seconds=0)
    assert platform.rollout().confirmed_at == before + (platform.clock() - seen_at) - PLANNED


@pytest.mark.django_db
def test_a_cluster_that_is_away_has_the_time_among_those_not_observed(platform: Platform) -> None:
    platform.live()
    cluster = Cluster.objects.get()
    now = timezone.now()
    note_components(cluster_id=cluster.pk, nodes=Nodes(), now=now)
    for minute in range(1, 5):
        note_silence(cluster_id=cluster.pk, problem="away", now=now + timedelta(minutes=minute))
    note_components(cluster_id=cluster.pk, nodes=Nodes(), now=now + timedelta(minutes=5))
    cluster.refresh_from_db()
    assert cluster.unseen == [[(now + PLANNED).isoformat(), (now + timedelta(minutes=5)).isoformat()]]
