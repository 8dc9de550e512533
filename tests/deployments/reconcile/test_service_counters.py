"""What is counted by service, namespace and team."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from prometheus_client import REGISTRY

from accounts.domain.roles import Owned
from accounts.services import teams
from clusters.services import connection
from deployments import tasks
from deployments.domain.phases import Phase
from deployments.models import InferenceService
from deployments.reconcile import service_counters
from deployments.services import rollout_abort
from tests.deployments._support.platform import Platform

Capture = Callable[..., AbstractContextManager[object]]


@pytest.fixture
def owned(platform: Platform) -> Platform:
    """Give a platform whose service belongs to the team `vision` and has a rollout in progress."""
    service_counters.expect_end.cache_clear()
    teams.team_create(name="vision", actor="test", now=platform.clock())
    teams.ownership_set(team="vision", kind=Owned.NAMESPACE, name="default", actor="test", now=platform.clock())
    platform.live()
    platform.version(2)
    platform.start()
    return platform


def ended(phase: Phase) -> float | None:
    of = {"namespace": "default", "service": "digits", "team": "vision"}
    return REGISTRY.get_sample_value("fairlead_rollouts_ended_total", {**of, "phase": str(phase)})


def test_a_rollout_that_fails_is_counted_once_by_service_namespace_and_team(
    owned: Platform, django_capture_on_commit_callbacks: Capture
) -> None:
    owned.turn()
    before = {phase: ended(phase) for phase in (Phase.HEALTHY, Phase.DEGRADED, Phase.ABORTED)}
    assert None not in before.values(), "the counters are there before the rollout ends, so that rates see its end"
    with django_capture_on_commit_callbacks(execute=True):
        owned.cluster.broken["digits-00002"] = "out of memory"
        owned.until(lambda: owned.rollout().phase == Phase.DEGRADED, turns=120)
        owned.turn()
    assert ended(Phase.DEGRADED) == (before[Phase.DEGRADED] or 0) + 1
    assert {phase: ended(phase) for phase in (Phase.HEALTHY, Phase.ABORTED)} == {
        phase: before[phase] for phase in (Phase.HEALTHY, Phase.ABORTED)
    }


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_ends_are_counted_by_their_reason_and_turns_by_their_interval(
    owned: Platform, django_capture_on_commit_callbacks: Capture
) -> None:
    def counts() -> tuple[float, float, float]:
        name = "fairlead_rollout_turn_interval_seconds_bucket"
        aborted = sample("fairlead_rollout_ends_total", phase="Aborted", reason="Aborted")
        return aborted, sample(name, le="5.0"), sample(name, le="+Inf")

    owned.turn()
    before = counts()
    with django_capture_on_commit_callbacks(execute=True):
        owned.turn(seconds=4.0)
        owned.turn(seconds=70.0)
        rollout_abort(rollout_id=owned.rollout().pk, actor="alice", now=owned.clock())
        owned.turn(seconds=90.0)
    after = counts()
    assert [new - old for new, old in zip(after, before, strict=True)] == [1, 1, 2], "no rollout, no interval"


def test_what_people_abort_is_counted_apart(owned: Platform, django_capture_on_commit_callbacks: Capture) -> None:
    owned.turn()
    before = ended(Phase.ABORTED), ended(Phase.DEGRADED)
    with django_capture_on_commit_callbacks(execute=True):
        rollout_abort(rollout_id=owned.rollout().pk, actor="alice", now=owned.clock())
    assert (ended(Phase.ABORTED), ended(Phase.DEGRADED)) == ((before[0] or 0) + 1, before[1])


def test_nothing_is_counted_before_the_commit(owned: Platform, django_capture_on_commit_callbacks: Capture) -> None:
    owned.turn()
    before = ended(Phase.ABORTED)
    with django_capture_on_commit_callbacks(execute=False):
        rollout_abort(rollout_id=owned.rollout().pk, actor="alice", now=owned.clock())
    assert ended(Phase.ABORTED) == before


def test_a_tick_that_fails_is_counted_for_its_service(owned: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    of = {"namespace": "default", "service": "digits", "team": "vision"}
    before = REGISTRY.get_sample_value("fairlead_reconcile_failures_total", of) or 0
    monkeypatch.setattr(connection, "driver_of", lambda _cluster: owned.cluster)
    owned.cluster.away = "the local agent has not run here"
    InferenceService.objects.update(ticked_at=None)
    tasks.sweep()
    assert REGISTRY.get_sample_value("fairlead_reconcile_failures_total", of) == before + 1
