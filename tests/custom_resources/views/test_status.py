"""Statuses of objects in the course of a service's life."""

from typing import Any

from custom_resources.views.status import Condition, conditions, policy_status, rollout_status, service_status
from deployments.services import rollout_abort
from tests.deployments._support.fakes import ManualClock
from tests.deployments._support.platform import Platform


def status_of(platform: Platform, problem: str = "") -> dict[str, Any]:
    return service_status(platform.view(), problem, before={}, generation=1, now=platform.clock())


def words(status: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["status"] for each in status["conditions"]}


def test_a_service_from_its_first_replica_over_a_rollout_to_its_abort(platform: Platform) -> None:
    platform.version(1)
    platform.policy()
    platform.apply()
    assert words(status_of(platform)) == {
        "Ready": "False",
        "Progressing": "True",
        "Promoted": "Unknown",
        "Degraded": "False",
        "Reconciling": "True",
    }
    platform.until(lambda: platform.view().phase == "Ready")
    live = status_of(platform)
    assert words(live) == {"Ready": "True", "Progressing": "False", "Promoted": "True", "Degraded": "False"}
    assert (live["modelVersion"], live["revision"], live["weights"]) == ("1", "digits-00001", {"digits-00001": 100})

    platform.version(2)
    platform.start()
    platform.until(lambda: platform.view().revisions[-1].weight_actual == 10)
    going = status_of(platform)
    assert words(going) == {
        "Ready": "True",
        "Progressing": "True",
        "Promoted": "Unknown",
        "Degraded": "False",
        "Reconciling": "True",
    }
    waits = next(each for each in going["conditions"] if each["type"] == "Progressing")
    assert waits["message"], "why it waits"
    assert going["weights"] == {"digits-00001": 90, "digits-00002": 10}

    rollout_abort(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
    failed = status_of(platform)
    assert words(failed) == {
        "Ready": "True",
        "Progressing": "False",
        "Promoted": "False",
        "Degraded": "True",
        "Stalled": "True",
    }
    view = platform.view().rollout
    assert view is not None
    shown = rollout_status(view, None, before={}, generation=1, now=platform.clock())
    assert (shown["phase"], shown["to"], "finishedAt" in shown) == ("Aborted", "digits-00002", True)
    assert words(shown) == {"Progressing": "False", "Promoted": "False", "Stalled": "True"}


def test_what_is_refused_is_said_beside_the_service_that_goes_on(platform: Platform) -> None:
    platform.live()
    refused = status_of(platform, "spec.predictor.model.storageUri is 'x'")
    assert words(refused)["Ready"] == "True"
    degraded = next(each for each in refused["conditions"] if each["type"] == "Degraded")
    assert (degraded["reason"], degraded["message"]) == ("Refused", "spec.predictor.model.storageUri is 'x'")


def test_an_object_without_a_service_or_with_a_wrong_policy_is_not_ready(platform: Platform) -> None:
    now = platform.clock()
    pending = service_status(None, "", before={}, generation=1, now=now)
    assert (pending["phase"], words(pending)["Ready"], words(pending)["Degraded"]) == ("Pending", "False", "False")
    assert service_status(None, "it is wrong", before={}, generation=1, now=now)["phase"] == "Refused"
    assert words(policy_status("it is wrong", before={}, generation=1, now=now)) == {
        "Ready": "False",
        "Stalled": "True",
    }
    assert words(policy_status("", before={}, generation=1, now=now)) == {"Ready": "True"}


def test_a_condition_keeps_the_time_of_its_last_transition() -> None:
    clock = ManualClock()
    ready = Condition("Ready", "False", "Pending", "it starts")
    first = conditions([ready], (), generation=1, now=clock())
    clock.go_on(60)
    same = conditions([ready._replace(message="it still starts")], first, generation=2, now=clock())
    assert same[0]["lastTransitionTime"] == first[0]["lastTransitionTime"]
    assert (same[0]["message"], same[0]["observedGeneration"]) == ("it still starts", 2)
    after = conditions([Condition("Ready", "True", "Ready")], same, generation=2, now=clock())
    assert after[0]["lastTransitionTime"] > first[0]["lastTransitionTime"]
