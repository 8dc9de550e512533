"""Why a service waits: by itself, else because its rollout does; and since when, as recorded."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from common.errors import Unavailable
from deployments.domain.waits import Condition, ServiceFacts, Wait, condition_of, wait_of_service
from deployments.models import InferenceService, Rollout
from tests.deployments._support.platform import Platform

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
QUIET = ServiceFacts(deleting=False, live=True, standing=None, reason="digits-00001 serves all traffic with 1 replica")
ROLLOUT = Wait("Holding", "held", 3, "the hold ends", NOW)


@pytest.mark.parametrize(
    ("facts", "condition", "evidence"),
    [
        pytest.param(
            replace(QUIET, deleting=True, reason="alice deletes it; its replicas drain"),
            Condition.DRAINING,
            "alice deletes it; its replicas drain",
            id="it is being deleted",
        ),
        pytest.param(
            replace(QUIET, standing=Condition.REPLICAS_NOT_READY, reason="0 of 1 replicas are ready", import_note="x"),
            Condition.REPLICAS_NOT_READY,
            "0 of 1 replicas are ready",
            id="what clients feel comes before what is to come",
        ),
        pytest.param(
            replace(QUIET, live=False, import_note="waiting for import: 3 MB"),
            Condition.IMPORTING,
            "waiting for import: 3 MB",
            id="its first model is imported",
        ),
        pytest.param(
            replace(QUIET, import_note="it was not imported", import_failed=True),
            Condition.IMPORT_FAILED,
            "it was not imported",
            id="an import ended badly",
        ),
        pytest.param(
            replace(QUIET, live=False, reason="its first revision is being started"),
            Condition.STARTING,
            "its first revision is being started",
            id="nobody has looked yet",
        ),
        pytest.param(
            replace(QUIET, alias_problem="input 'x' is gone"),
            Condition.ALIAS_REFUSED,
            "what its alias means now is not rolled out: input 'x' is gone",
            id="its alias means what does not fit",
        ),
    ],
)
def test_a_condition_has_all_of_its_parts(facts: ServiceFacts, condition: Condition, evidence: str) -> None:
    wait = wait_of_service(facts, NOW, None)
    assert wait is not None
    assert (wait.condition, wait.evidence, wait.since) == (condition, evidence, NOW)
    assert wait.changes_when


@pytest.mark.parametrize("standing", Condition)
def test_every_condition_says_what_would_change_it(standing: Condition) -> None:
    wait = wait_of_service(replace(QUIET, standing=standing), NOW, None)
    assert wait is not None
    assert len(wait.changes_when) > 20


def test_a_service_that_serves_waits_for_nothing_but_its_rollout() -> None:
    assert condition_of(QUIET) is None
    assert wait_of_service(QUIET, NOW, None) is None
    assert wait_of_service(QUIET, NOW, ROLLOUT) is ROLLOUT
    assert wait_of_service(replace(QUIET, alias_problem="it does not fit"), NOW, ROLLOUT) is ROLLOUT


def test_what_keeps_clients_from_answers_comes_before_the_rollout() -> None:
    wait = wait_of_service(replace(QUIET, standing=Condition.REPLICAS_NOT_READY), NOW, ROLLOUT)
    assert wait is not None
    assert wait.condition == Condition.REPLICAS_NOT_READY


def test_a_condition_is_dated_from_its_first_moment_to_its_last(platform: Platform) -> None:
    platform.live()
    assert platform.view().waits is None
    platform.cluster.away = "the agent is silent"
    for _ in range(4):
        with pytest.raises(Unavailable):
            platform.turn()
    began = platform.clock() - timedelta(seconds=6)
    wait = platform.view().waits
    assert wait is not None
    assert (wait.condition, wait.since) == ("ClusterUnavailable", began)
    assert "the agent is silent" in wait.evidence
    platform.cluster.away = ""
    platform.turn()
    assert platform.view().waits is None
    assert not InferenceService.objects.get().waits_for


def test_a_rollouts_wait_is_dated_from_when_its_condition_began(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    began = platform.clock()
    wait = platform.view().waits
    assert wait is not None
    assert (wait.condition, wait.since) == ("CanaryStarting", began)
    platform.cluster.broken["digits-00002"] = "loading the model"
    platform.turn()
    platform.turn()
    wait = platform.view().waits
    assert wait is not None
    assert (wait.condition, wait.since) == ("CanaryStarting", began), "it still waits for the same"
    assert "loading the model" in wait.evidence
    platform.cluster.broken.clear()
    platform.until(lambda: Rollout.objects.get().reason_code == "NoTraffic")
    wait = platform.view().waits
    assert wait is not None
    assert wait.since == platform.clock()
    platform.turn()
    again = platform.view().waits
    assert again == wait, "nothing but time has passed"
