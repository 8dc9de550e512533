"""What Flux and Argo CD make of the statuses that the platform writes."""

from typing import Any

import pytest
import yaml

from deployments.domain.phases import Code
from deployments.services import rollout_abort, rollout_promote
from tests.charts.argo_cd import ACTIONS, FOLDER, settings
from tests.custom_resources._support.kstatus import kstatus
from tests.custom_resources._support.life import GENERATION, item, lives, refused_alias, rollout
from tests.custom_resources._support.lua import ran
from tests.deployments._support.platform import Platform

HEALTH = FOLDER / "health.lua"
DISCOVERY = FOLDER / "actions" / "discovery.lua"
EXPECTED = {
    "a service that no watcher has seen": ("InProgress", "Progressing"),
    "a service that is not followed yet": ("InProgress", "Progressing"),
    "a service refused before it is there": ("Failed", "Degraded"),
    "a service whose first replica starts": ("InProgress", "Progressing"),
    "a service that serves": ("Current", "Healthy"),
    "a service whose object changed since": ("InProgress", "Progressing"),
    "a service refused while it serves": ("Failed", "Degraded"),
    "a service whose replica is moved": ("InProgress", "Progressing"),
    "a service whose replicas fail": ("Failed", "Degraded"),
    "a service that rolls out": ("InProgress", "Progressing"),
    "a service whose rollout waits for somebody": ("InProgress", "Suspended"),
    "a service whose rollout was aborted": ("Failed", "Degraded"),
    "a service whose object went back during its rollout": ("Current", "Healthy"),
    "a service with its new version": ("Current", "Healthy"),
    "a service that is stopped": ("InProgress", "Suspended"),
    "a rollout on its way": ("InProgress", "Progressing"),
    "a rollout that waits for somebody": ("InProgress", "Suspended"),
    "a rollout that was aborted": ("Failed", "Degraded"),
    "a rollout that ended well": ("Current", "Healthy"),
    "a version that no watcher has seen": ("InProgress", "Progressing"),
    "a version before its import": ("InProgress", "Progressing"),
    "a version that is Importing": ("InProgress", "Progressing"),
    "a version that is ImportFailed": ("Failed", "Degraded"),
    "a version that is Checking": ("InProgress", "Progressing"),
    "a version that is Rejected": ("Failed", "Degraded"),
    "a version that is Ready": ("Current", "Healthy"),
    "a version that is Deleted": ("Failed", "Degraded"),
    "a version whose aliases are refused": ("Failed", "Degraded"),
    "a policy that no watcher has seen": ("InProgress", "Progressing"),
    "a policy that is saved": ("Current", "Healthy"),
    "a policy that is refused": ("Failed", "Degraded"),
}


def conditions(made: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {each["type"]: each for each in made["status"].get("conditions", ())}


def test_flux_and_argo_cd_see_what_the_status_says_and_why(platform: Platform) -> None:
    seen = {}
    for what, made in lives(platform):
        health, found = ran(HEALTH, made), kstatus(made)
        seen[what] = (found[0], health["status"])
        is_observed = made["status"]["observedGeneration"] == made["metadata"]["generation"]
        assert not {"Reconciling", "Stalled"} <= conditions(made).keys(), "the first one of them would decide"
        if is_observed and health["status"] in ("Degraded", "Progressing") and found[0] != "Current":
            assert health["message"] == found[1], what
            assert health["message"], what
    assert seen == EXPECTED


def test_a_refused_alias_is_no_rollout_on_its_way(platform: Platform) -> None:
    made = refused_alias(platform)
    assert conditions(made)["Ready"]["status"] == "True"
    assert (kstatus(made)[0], ran(HEALTH, made)["status"]) == ("Failed", "Degraded")
    assert "is not rolled out" in ran(HEALTH, made)["message"]


@pytest.mark.parametrize("code", Code)
def test_argo_cd_knows_every_pause(code: Code) -> None:
    is_pause = code.value.startswith("Paused") or code is Code.AWAITING_APPROVAL
    reconciling = {"type": "Reconciling", "status": "True", "reason": code.value, "message": "it waits"}
    made = item("InferenceService", {"observedGeneration": GENERATION, "conditions": [reconciling]})
    assert ran(HEALTH, made) == {"status": "Suspended" if is_pause else "Progressing", "message": "it waits"}


@pytest.mark.parametrize("status", [None, {}, {"conditions": []}], ids=["no status", "an empty one", "no generation"])
def test_a_status_without_its_parts_is_no_error_of_a_script(status: dict[str, Any] | None) -> None:
    made = item("Rollout", {})
    made["status"] = status
    if status is None:
        del made["status"]
    assert ran(HEALTH, made)["status"] == "Progressing"
    assert all(each["disabled"] for each in ran(DISCOVERY, made).values())


def allowed(made: dict[str, Any]) -> set[str]:
    found = ran(DISCOVERY, made)
    assert set(found) == set(ACTIONS)
    return {name for name, each in found.items() if not each["disabled"]}


def test_actions_are_those_that_the_rollout_takes(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.policy(steps=[{"weight": 10, "pause": True}, {"weight": 50}])
    started = platform.start()
    assert allowed(rollout(platform)) == {"abort"}
    platform.until(lambda: platform.rollout().phase == "Paused")
    paused = rollout(platform)
    assert allowed(paused) == {"promote", "abort"}
    conditions(paused)["Progressing"]["reason"] = Code.AWAITING_APPROVAL.value
    assert allowed(paused) == {"abort"}, "it takes approvals"
    rollout_abort(rollout_id=started.pk, actor="alice", now=platform.clock())
    assert allowed(rollout(platform)) == {"retry"}
    platform.start()
    platform.until(lambda: platform.rollout().phase == "Paused")
    rollout_promote(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
    platform.until(lambda: platform.rollout().phase == "Healthy")
    assert allowed(rollout(platform)) == set()


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("spec", [{}, None], ids=["an empty spec", "no spec"])
def test_an_action_changes_the_spec_alone(action: str, spec: dict[str, Any] | None) -> None:
    made = item("Rollout", {"phase": "Paused"}) | {"spec": spec}
    assert ran(FOLDER / "actions" / f"{action}.lua", made) == {**made, "spec": {"action": action}}


def test_the_settings_hold_these_scripts() -> None:
    found = settings()
    made = item("RolloutPolicy", {"observedGeneration": -1})
    of_health = [text for name, text in found.items() if ".health." in name]
    assert len(of_health) == 4
    for script in of_health:
        assert ran(script, made)["status"] == "Progressing"
    actions = yaml.safe_load(found["resource.customizations.actions.fairlead.dev_Rollout"])
    assert {each["name"] for each in actions["definitions"]} == set(ran(actions["discovery.lua"], made))
