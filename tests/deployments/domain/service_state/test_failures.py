"""What is kept of failures, and the words for how a service's models stand."""

from dataclasses import replace

import pytest

from deployments.domain.service_state.failures import ModelState, kept, model_state
from deployments.models import Revision
from deployments.views.shapes import ServiceView
from integrations.clusters.base import Failure, FailureReason, ReplicaEvent
from tests.deployments._support.platform import Platform

BROKE = "no model: it is not a protobuf message"
FAILURE = Failure(
    FailureReason.RUNTIME_UNHEALTHY,
    "it broke",
    5.0,
    3,
    "a",
    "runtime",
    (ReplicaEvent(4.0, "BackOff", "again"),),
    ("x",),
)


def test_a_failure_that_is_told_again_by_a_replica_that_is_well_keeps_its_log() -> None:
    first = kept(None, FAILURE)
    assert first is not None
    assert kept(first, replace(FAILURE, events=(), log=())) == first
    assert kept(first, None) == first


def test_the_newest_failure_is_kept() -> None:
    first = kept(None, FAILURE)
    later = kept(first, replace(FAILURE, at=6.0, log=()))
    assert later is not None
    assert (later["at"], later["log"]) == (6.0, [])
    assert kept(later, FAILURE) == later


@pytest.mark.parametrize(
    ("role", "wanted", "ready", "replicas", "is_failing", "state"),
    [
        pytest.param("stable", 2, 1, 2, True, ModelState.LOADED, id="one of two serves"),
        pytest.param("stable", 1, 0, 1, True, ModelState.FAILED_TO_LOAD, id="it fails"),
        pytest.param("stable", 1, 0, 1, False, ModelState.LOADING, id="it loads"),
        pytest.param("stable", 1, 0, 0, False, ModelState.PENDING, id="nothing is there yet"),
        pytest.param("retired", 0, 0, 0, False, ModelState.STANDBY, id="it is stopped"),
        pytest.param("retired", 0, 0, 0, True, ModelState.STANDBY, id="it is stopped, whatever was"),
        pytest.param("failed", 0, 0, 0, True, ModelState.FAILED_TO_LOAD, id="it went with a failure"),
    ],
)
def test_the_state_of_a_revisions_model(
    role: str, wanted: int, ready: int, replicas: int, is_failing: bool, state: ModelState
) -> None:
    found = model_state(role=role, wanted=wanted, ready=ready, replicas=replicas, is_failing=is_failing)
    assert found is state


def states(view: ServiceView) -> tuple[str, str, str]:
    status = view.model_status
    return status.transition_status, status.active_model_state, status.target_model_state


def test_a_service_comes_up_and_is_up_to_date(platform: Platform) -> None:
    platform.version(1)
    platform.policy()
    platform.apply()
    assert states(platform.view()) == ("InProgress", "Pending", "Pending")
    platform.until(lambda: platform.view().phase == "Ready")
    assert states(platform.view()) == ("UpToDate", "Loaded", "Loaded")
    assert platform.view().model_status.last_failure is None


def test_a_first_model_that_does_not_load_blocks(platform: Platform) -> None:
    platform.cluster.broken["digits-00001"] = BROKE
    platform.version(1)
    platform.policy()
    platform.apply()
    platform.turn()
    platform.turn()
    view = platform.view()
    assert states(view) == ("BlockedByFailedLoad", "FailedToLoad", "FailedToLoad")
    failure = view.model_status.last_failure
    assert failure is not None
    assert (failure.reason, failure.message, failure.exit_code) == ("ModelLoadFailed", BROKE, 1)
    assert failure.log == ("loading", BROKE)


def test_a_canary_that_does_not_load_is_told_long_after_it_is_gone(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.cluster.broken["digits-00002"] = BROKE
    platform.start()
    platform.turn()
    platform.turn()
    assert states(platform.view()) == ("BlockedByFailedLoad", "Loaded", "FailedToLoad")
    platform.until(lambda: platform.rollout().phase == "Degraded" and Revision.objects.get(number=2).stopped_at, 2000)
    for _ in range(3):
        platform.turn()
    view = platform.view()
    assert states(view) == ("BlockedByFailedLoad", "Loaded", "FailedToLoad")
    [_, canary] = view.revisions
    assert (canary.replicas_wanted, canary.is_failing) == (0, True)
    assert canary.last_failure is not None
    assert canary.last_failure.log == ("loading", BROKE)


def test_the_same_failure_is_written_once(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.cluster.broken["digits-00002"] = BROKE
    service = platform.start().service
    for _ in range(3):
        platform.turn()
    service.refresh_from_db()
    changes = service.changes
    platform.turn(seconds=0.1)
    service.refresh_from_db()
    assert service.changes == changes
