"""Approvals and answers of systems outside on a service's page: what is there, and the buttons of those who may."""

import pytest
from django.test import Client
from django.utils import timezone

from accounts.domain.approver import Approver
from accounts.domain.scopes import Scope
from accounts.services import user_get_or_create
from deployments.domain.phases import Phase
from deployments.models import Approval, Rollout, WebhookQuestion
from deployments.services import rollout_approve
from tests import scenes
from tests._support.page import marked

pytestmark = pytest.mark.django_db
DETAIL = "/services/default/digits/"


@pytest.fixture
def rollout(monkeypatch: pytest.MonkeyPatch) -> Rollout:
    pause = {"approvals": 2, "fourEyes": True, "expires": "24h"}
    steps = [{"weight": 10, "pause": pause}, {"weight": 50}, {"weight": 60}]
    monkeypatch.setitem(scenes.POLICY, "steps", steps)
    return scenes.rollout(scenes.service(), phase=Phase.PAUSED)


def signed_in(name: str, scope: Scope = Scope.WRITE) -> Client:
    client = Client()
    client.post("/signin/", {"token": scenes.token(scope, name)})
    return client


def text(client: Client) -> str:
    return client.get(DETAIL).content.decode().replace("\N{NO-BREAK SPACE}", " ")


def approve(rollout: Rollout, name: str, comment: str = "") -> None:
    user_get_or_create(username=name, now=timezone.now())
    rollout_approve(rollout_id=rollout.pk, approver=Approver(name), comment=comment, actor=name, now=timezone.now())


def test_who_may_approve_sees_the_button_and_who_did(rollout: Rollout) -> None:
    approve(rollout, "carol", "curves are fine")
    page = text(signed_in("bob"))
    for words in ("step 1: 1 of 2", "carol", "curves are fine", 'id="approve"', 'id="reject"', "then 2 approvals"):
        assert words in page
    assert 'id="withdraw"' not in page
    assert 'id="promote"' not in page


def test_who_may_not_reads_why(rollout: Rollout) -> None:
    starter = text(signed_in("test"))
    assert "Test started the rollout, and the policy asks for four eyes; somebody else has to approve" in starter
    assert 'id="approve"' not in starter
    assert 'id="reject"' in starter
    viewer = text(signed_in("vera", Scope.READ))
    assert marked(viewer, "deployers-approve")
    assert 'id="reject"' not in viewer


def test_approve_withdraw_and_reject_by_button(rollout: Rollout) -> None:
    bob = signed_in("bob")
    url = f"/rollouts/{rollout.pk}/approvals"
    assert bob.post(f"{url}/approve", {"comment": "fine"}, headers={"HX-Request": "true"}).status_code == 200
    assert 'id="withdraw"' in text(bob)
    assert "Bob has approved already" in text(bob)
    assert bob.post(f"{url}/withdraw").status_code == 302
    assert Approval.objects.get().withdrawn_at is not None
    bob.post(f"{url}/reject", {"comment": "no"})
    rollout.refresh_from_db()
    assert (rollout.phase, rollout.reason_code) == ("Aborted", "Rejected")
    assert bob.post(f"{url}/dance").status_code == 404
    assert signed_in("vera", Scope.READ).post(f"{url}/approve").status_code == 403


def test_what_a_comment_says_is_text(rollout: Rollout) -> None:
    approve(rollout, "carol", "<script>alert(1)</script>")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text(signed_in("bob"))


@pytest.mark.parametrize("answer", ["go", "wait", "no", "unavailable"])
def test_what_systems_outside_said_is_shown_as_text(rollout: Rollout, answer: str) -> None:
    now = timezone.now()
    WebhookQuestion.objects.create(
        rollout=rollout,
        attempt=1,
        step_index=0,
        name="end-to-end",
        when="after",
        answer=answer,
        message="<b>60 of 90</b>",
        tries=3,
        next_try_at=now,
        deadline_at=now,
        opened_at=now,
    )
    page = text(signed_in("vera", Scope.READ))
    for words in ("end-to-end", "after step 1", f'data-state="{answer}"', "&lt;b&gt;60 of 90", "3 times"):
        assert words in page
