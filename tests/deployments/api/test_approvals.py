"""Approvals from the API to the reconciler, on the database."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.approver import Approver
from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry, User
from accounts.services import teams, user_get_or_create
from deployments.domain.phases import Phase
from deployments.models import Approval, Revision, Rollout
from deployments.services import rollout_approve, rollout_retry
from events.models import WebhookDelivery
from registry.services import alias_set
from tests import scenes
from tests.deployments._support.platform import Platform

Api = Callable[..., APIClient]
TWO = {"approvals": 2, "fourEyes": True, "expires": "24h"}


def waiting(platform: Platform, actor: str = "alice", **policy: Any) -> Rollout:
    """Return a rollout of `alice`, who registered nothing, that waits for approvals at its first step."""
    platform.live()
    platform.version(2)
    platform.policy(**{"name": "asking", "steps": [{"weight": 10, "pause": TWO}, {"weight": 50}], **policy})
    platform.start("2", "asking")
    platform.until(lambda: platform.rollout().reason_code == "AwaitingApproval")
    return platform.rollout()


def approve(platform: Platform, user: str, rollout: Rollout | None = None) -> None:
    user_get_or_create(username=user, now=timezone.now())
    rollout_approve(
        rollout_id=(rollout or platform.rollout()).pk,
        approver=Approver(user),
        comment="",
        actor=f"{user} (token laptop)",
        now=platform.clock(),
    )


def given(client: APIClient, rollout: Rollout) -> list[tuple[str, str]]:
    shown = client.get(f"/api/v1/rollouts/{rollout.pk}/approvals").json()
    return [(each["user"], each["state"]) for each in shown["given"]]


def test_two_people_approve_and_the_rollout_goes_on(platform: Platform, api: Api) -> None:
    rollout = waiting(platform)
    url = f"/api/v1/rollouts/{rollout.pk}/approvals"
    bob, carol = api(Scope.WRITE, "bob"), api(Scope.WRITE, "carol")
    asked = bob.get(url).json()
    assert asked["asked"] == {
        "point": "step 1",
        "is_awaited": True,
        "approvals": 2,
        "missing": 2,
        "four_eyes": True,
        "expires_seconds": 86400.0,
    }
    assert (asked["may_approve"], asked["why_not"]) == (True, "")
    first = bob.post(url, {"comment": "curves are fine"})
    assert (first.status_code, first.json()["asked"]["missing"]) == (201, 1)
    assert first.json()["why_not"].startswith("bob has approved already")
    again = bob.post(url, {})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "conflict")
    platform.turn()
    assert "1 of which bob gave" in platform.rollout().reason_message
    assert carol.post(url, {}).status_code == 201
    platform.until(lambda: platform.rollout().step_index == 1)
    assert given(bob, rollout) == [("bob", "used"), ("carol", "used")]
    (entry,) = AuditEntry.objects.filter(action="rollout.approve", actor__startswith="bob")
    assert (entry.target, entry.detail["comment"]) == (f"rollouts/{rollout.pk}", "curves are fine")
    kinds = platform.events()
    assert kinds.count("RolloutApprovalAwaited") == 1
    assert kinds.count("RolloutApproved") == 2
    assert bob.post(url, {}).json()["error"]["code"] == "invalid_transition"


def test_webhooks_are_told_that_an_approval_is_awaited(platform: Platform) -> None:
    scenes.webhook("RolloutApprovalAwaited")
    waiting(platform)
    (told,) = WebhookDelivery.objects.all()
    assert told.payload["message"].startswith("step 1 of 2 (10 %) waits for 2 approvals")


def test_four_eyes_keep_out_who_started_retried_registered_and_moved_the_alias(platform: Platform, api: Api) -> None:
    rollout = waiting(platform)
    url = f"/api/v1/rollouts/{rollout.pk}/approvals"
    refused = api(Scope.WRITE, "alice").post(url, {})
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        403,
        "alice started the rollout, and the policy asks for four eyes; somebody else has to approve",
    )
    assert api(Scope.WRITE, "test").get(url).json()["why_not"].startswith("test registered digits version 2")
    bob = api(Scope.WRITE, "bob")
    assert bob.post(f"/api/v1/rollouts/{rollout.pk}/reject", {"comment": "not today"}).status_code == 200
    rollout_retry(rollout_id=rollout.pk, actor="bob (token ci)", now=platform.clock())
    platform.until(lambda: platform.rollout().reason_code == "AwaitingApproval")
    assert bob.post(url, {}).json()["error"]["message"].startswith("bob started it again")


def test_who_moved_an_alias_is_behind_the_rollout_that_follows_it(platform: Platform, api: Api) -> None:
    platform.policy(name="asking", approval=TWO)
    first = platform.version(1)
    platform.alias(first)
    platform.apply(uri="models:/digits@champion", policy="asking")
    platform.until(lambda: platform.view().phase == "Ready")
    platform.version(2)
    alias_set(model="digits", name="champion", number=2, now=platform.clock(), actor="mia (token ui)")
    platform.until(lambda: Rollout.objects.exists() and platform.rollout().reason_code == "AwaitingApproval")
    rollout = platform.rollout()
    refused = api(Scope.WRITE, "mia").post(f"/api/v1/rollouts/{rollout.pk}/approvals", {})
    assert refused.json()["error"]["message"].startswith("mia moved the alias champion")
    assert rollout.weight == 0, "nothing moves before it is approved"
    approve(platform, "bob")
    approve(platform, "carol")
    platform.until(lambda: platform.rollout().weight == 10)


def test_an_approval_of_another_attempt_does_not_count(platform: Platform, api: Api) -> None:
    rollout = waiting(platform)
    approve(platform, "bob")
    client = api(Scope.WRITE, "carol")
    client.post(f"/api/v1/rollouts/{rollout.pk}/abort")
    assert given(client, rollout) == [("bob", "expired")]
    rollout_retry(rollout_id=rollout.pk, actor="dan", now=platform.clock())
    platform.until(lambda: platform.rollout().reason_code == "AwaitingApproval")
    approve(platform, "carol")
    for _ in range(3):
        platform.turn()
    assert (platform.rollout().phase, platform.rollout().step_index) == (Phase.PAUSED, 0)
    assert "it was for attempt 1, and this is attempt 2" in platform.rollout().reason_message


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(
            lambda: Revision.objects.filter(number=2).update(artifact_digest="sha256:other"),
            "sha256:other is rolled out now",
            id="another artifact",
        ),
        pytest.param(
            lambda: Revision.objects.filter(number=2).update(env={"A": "B"}), "configuration", id="another environment"
        ),
        pytest.param(
            lambda: Rollout.objects.update(
                policy_document={**Rollout.objects.get().policy_document, "scaleDownDelay": "31s"}
            ),
            "the policy's text is not the one that was approved",
            id="another policy text",
        ),
        pytest.param(lambda: User.objects.filter(username="bob").update(is_active=False), "may not", id="user is gone"),
        pytest.param(
            lambda: teams.member_set(
                team="default", username="bob", role=Role.VIEWER, actor="test", now=timezone.now()
            ),
            "bob may not approve here any more",
            id="the role is gone",
        ),
    ],
)
def test_an_approval_of_what_is_not_there_any_more_does_not_count(
    platform: Platform, change: Callable[[], object], why: str
) -> None:
    waiting(platform)
    user_get_or_create(username="root", now=timezone.now())  # bob must not be the last administrator
    approve(platform, "bob")
    change()
    approve(platform, "carol")
    for _ in range(3):
        platform.turn()
    assert platform.rollout().step_index == 0
    assert why in platform.rollout().reason_message


def test_an_approval_expires_and_can_be_given_again(platform: Platform) -> None:
    waiting(platform, steps=[{"weight": 10, "pause": {**TWO, "expires": "1h"}}, {"weight": 50}])
    approve(platform, "bob")
    platform.clock.now += timedelta(hours=1)
    approve(platform, "carol")
    platform.turn()
    assert platform.rollout().step_index == 0
    assert "that of bob expired: it was given more than 1h ago" in platform.rollout().reason_message
    approve(platform, "bob")
    platform.until(lambda: platform.rollout().step_index == 1)


def test_an_approval_can_be_withdrawn_while_the_rollout_waits(platform: Platform, api: Api) -> None:
    rollout = waiting(platform)
    url = f"/api/v1/rollouts/{rollout.pk}/approvals"
    bob = api(Scope.WRITE, "bob")
    assert bob.delete(url).status_code == 409
    bob.post(url, {})
    assert bob.delete(url).json()["asked"]["missing"] == 2
    assert given(bob, rollout) == [("bob", "withdrawn")]
    approve(platform, "carol")
    platform.turn()
    assert platform.rollout().step_index == 0
    assert platform.events()[-1] == "RolloutApproved"
    assert "RolloutApprovalWithdrawn" in platform.events()


def test_a_rejection_aborts_and_says_who_and_why(platform: Platform, api: Api) -> None:
    rollout = waiting(platform)
    url = f"/api/v1/rollouts/{rollout.pk}/reject"
    bob = api(Scope.WRITE, "bob")
    assert bob.post(url, {}).json()["error"]["field"] == "comment"
    answer = bob.post(url, {"comment": "the labels are wrong"}).json()
    assert (answer["phase"], answer["reason"]["code"]) == ("Aborted", "Rejected")
    assert "rejected by bob at step 1 of 2 (10 %): the labels are wrong" in answer["reason"]["message"]
    platform.turn()
    assert platform.cluster.weights()["digits-00002"] == 0
    assert AuditEntry.objects.get(action="rollout.reject").detail["comment"] == "the labels are wrong"


def test_promote_and_approvals_too_early_are_refused(platform: Platform, api: Api) -> None:
    rollout = waiting(platform)
    bob = api(Scope.WRITE, "bob")
    promoted = bob.post(f"/api/v1/rollouts/{rollout.pk}/promote")
    assert (promoted.status_code, promoted.json()["error"]["code"]) == (409, "invalid_transition")
    assert "fairlead rollouts approve" in promoted.json()["error"]["message"]
    Rollout.objects.update(phase=Phase.PROGRESSING)
    early = bob.post(f"/api/v1/rollouts/{rollout.pk}/approvals", {})
    assert early.json()["error"]["message"].startswith(f"rollout {rollout.pk} waits for no approval now")


def test_a_viewer_sees_why_he_may_not(platform: Platform, api: Api) -> None:
    rollout = waiting(platform)
    shown = api(Scope.READ, "vera").get(f"/api/v1/rollouts/{rollout.pk}/approvals").json()
    assert shown["may_approve"] is False
    assert "scope write" in shown["why_not"]


def test_an_approval_given_twice_at_the_same_time_counts_once(platform: Platform) -> None:
    rollout = waiting(platform)
    approve(platform, "bob")
    row = Approval.objects.get()
    row.pk = None
    row.save()
    for _ in range(3):
        platform.turn()
    assert (platform.rollout().pk, platform.rollout().step_index) == (rollout.pk, 0)


def test_the_whole_policy_is_read_back_as_it_was_put(platform: Platform, api: Api) -> None:
    file = {"steps": [{"weight": 10, "pause": TWO}], "approval": {"approvals": 1}}
    put = api(Scope.ADMIN).put("/api/v1/policies/asking", file).json()
    assert put["steps"][0]["pause"] == TWO
    assert put["approval"] == {"approvals": 1, "fourEyes": False, "expires": "24h"}
    wrong = api(Scope.ADMIN).put("/api/v1/policies/asking", {"steps": [{"weight": 10, "pause": {"approvals": 0}}]})
    assert wrong.json()["error"]["field"] == "steps[0].pause.approvals"
