"""Versions of a model that asks for approvals: what of them comes into services, and who is told."""

from collections.abc import Callable
from typing import Any

import pytest

from accounts.domain.approver import Approver
from common.errors import Conflict
from deployments.models import InferenceService, Rollout
from deployments.services import (
    rollout_abort,
    rollout_plan,
    rollout_retry,
    rollout_start,
    service_apply,
    service_plan,
)
from events.models import WebhookDelivery
from registry.domain.approval import Approval
from registry.services.governance import approval_require, version_decide
from tests import scenes
from tests.deployments._support.platform import Platform

REFUSED = "digits version 2 is not approved, which its model asks for; have somebody approve it who did not register it"


def ask(platform: Platform, *, is_required: bool = True) -> None:
    approval_require(model="digits", is_required=is_required, now=platform.clock(), actor="alice")


def decide(platform: Platform, decision: Approval, number: int = 2, comment: str = "it is slow") -> None:
    said: dict[str, Any] = {"comment": comment, "approver": Approver("bob"), "now": platform.clock(), "actor": "bob"}
    version_decide(model="digits", number=number, decision=decision, **said)


def wish(platform: Platform, **more: Any) -> dict[str, Any]:
    return {"namespace": "default", "name": "digits", "actor": "alice", "now": platform.clock(), **more}


def to_2(platform: Platform) -> dict[str, Any]:
    return wish(platform, version="2", policy=None)


def file_of_2(platform: Platform) -> dict[str, Any]:
    return wish(platform, document=platform.document(uri="models:/digits/2"))


BEGINNINGS = [
    pytest.param(rollout_start, to_2, id="a rollout"),
    pytest.param(rollout_plan, to_2, id="its dry run"),
    pytest.param(service_apply, file_of_2, id="a service file"),
    pytest.param(service_plan, file_of_2, id="its dry run, too"),
]


@pytest.mark.parametrize(("begin", "asked"), BEGINNINGS)
def test_what_is_not_approved_is_not_rolled_out(
    platform: Platform, begin: Callable[..., Any], asked: Callable[[Platform], dict[str, Any]]
) -> None:
    platform.live()
    platform.version(2)
    ask(platform)
    with pytest.raises(Conflict) as refusal:
        begin(**asked(platform))
    assert refusal.value.message == REFUSED
    decide(platform, Approval.DECLINED)
    with pytest.raises(Conflict, match="digits version 2 was declined by bob: it is slow; roll out one that is"):
        begin(**asked(platform))
    assert not Rollout.objects.exists()
    decide(platform, Approval.APPROVED)
    begin(**asked(platform))


def test_no_service_is_made_of_it(platform: Platform) -> None:
    platform.policy()
    platform.version(2)
    ask(platform)
    with pytest.raises(Conflict) as refusal:
        service_apply(**file_of_2(platform))
    assert refusal.value.message == REFUSED
    assert not InferenceService.objects.exists()
    ask(platform, is_required=False)
    assert service_apply(**file_of_2(platform))[1]


def test_what_is_live_already_can_still_be_changed(platform: Platform) -> None:
    platform.live()
    ask(platform)
    platform.apply(replicas=3)
    assert Rollout.objects.get().to_revision.model_version.number == 1


def test_the_way_back_to_what_served_before_is_open_unless_it_was_declined(platform: Platform) -> None:
    platform.live()
    platform.promoted()
    ask(platform)
    decide(platform, Approval.DECLINED, number=1)
    with pytest.raises(Conflict, match="digits version 1 was declined by bob"):
        platform.back()
    ask(platform, is_required=False)
    platform.back()
    platform.until(lambda: platform.rollout().phase == "Healthy")
    ask(platform)
    assert platform.back().to_revision.model_version.approval == "unreviewed"


def test_a_rollout_to_what_was_declined_meanwhile_is_not_begun_again(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    rollout = platform.start()
    rollout_abort(rollout_id=rollout.pk, actor="alice", now=platform.clock())
    ask(platform)
    with pytest.raises(Conflict) as refusal:
        rollout_retry(rollout_id=rollout.pk, actor="alice", now=platform.clock())
    assert refusal.value.message == REFUSED
    decide(platform, Approval.APPROVED)
    assert rollout_retry(rollout_id=rollout.pk, actor="alice", now=platform.clock()).pk == rollout.pk


def test_an_alias_that_moved_is_followed_once_somebody_approves(platform: Platform) -> None:
    platform.alias(platform.version(1))
    platform.policy()
    platform.apply(uri="models:/digits@champion")
    platform.until(lambda: platform.view().phase == "Ready")
    ask(platform)
    platform.alias(platform.version(2))
    platform.turn()
    waits = platform.view().waits
    assert waits is not None
    assert (waits.condition, REFUSED in waits.evidence) == ("AliasRefused", True)
    assert not Rollout.objects.exists()

    decide(platform, Approval.APPROVED)
    platform.turn()
    assert Rollout.objects.get().to_revision.model_version.number == 2


def test_webhooks_are_told_of_each_decision(platform: Platform) -> None:
    scenes.webhook("VersionApproved", "VersionDeclined")
    platform.version(2)
    decide(platform, Approval.APPROVED, comment="")
    decide(platform, Approval.DECLINED)
    payloads = [row.payload for row in WebhookDelivery.objects.order_by("pk")]
    assert [(each["event"], each["message"]) for each in payloads] == [
        ("VersionApproved", "model digits version 2 was approved by bob"),
        ("VersionDeclined", "model digits version 2 was declined by bob: it is slow"),
    ]
    assert (payloads[0]["model"], payloads[0]["version"], payloads[0]["by"]) == ("digits", 2, "bob")
