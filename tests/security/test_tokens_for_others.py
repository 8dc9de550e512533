"""Four eyes against an administrator who makes tokens for colleagues: no way makes two people of one."""

from collections.abc import Callable

import pytest
from django.db.models import Q
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.approver import Approver, token_by
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry
from deployments.models import Approval, Rollout
from deployments.services import policy_apply
from events.models import WebhookDelivery
from registry.models import ModelVersion, RegisteredModel
from registry.selectors import versions_to_approve
from tests import scenes
from tests._support.page import marked
from tests.scenes import model_version

pytestmark = pytest.mark.django_db
Api = Callable[..., APIClient]
VERSION = "/api/v1/models/digits/versions/1/approval"
YES = {"state": "approved"}
NO = {"state": "declined", "comment": "in his name"}
FOUR_EYES = {"name": "reviewed", "approval": {"approvals": 1, "fourEyes": True}, "steps": [{"weight": 10}]}


def bearer(secret: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


def made_for(maker: APIClient, username: str, name: str = "lent", scope: str = "admin") -> str:
    """Return the secret of a token that the maker makes for somebody."""
    answer = maker.post("/api/v1/tokens", {"name": name, "scope": scope, "user": username})
    assert answer.status_code == 201
    return str(answer.json()["token"])


@pytest.fixture
def version(api: Api) -> ModelVersion:
    """A version that needs approval; `test` registered it."""
    found = model_version(1)
    RegisteredModel.objects.update(requires_approval=True)
    api(Scope.WRITE, "bob")  # the colleague is there before
    return found


def rollout_by(client: APIClient, policy: dict[str, object] = FOUR_EYES) -> Rollout:
    """Return a rollout that the caller starts and that waits for approval before its first step."""
    policy_apply(document=policy, name=str(policy["name"]), actor="test", now=timezone.now())
    scenes.service()
    scenes.model_version(2)
    asked = {"version": "2", "policy": policy["name"]}
    answer = client.post("/api/v1/services/default/digits/rollouts", asked, format="json")
    assert answer.status_code == 201, answer.json()
    return Rollout.objects.latest("pk")


def said(answer: object) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["message"]  # type: ignore[attr-defined]


class TestVersions:
    def test_a_token_for_a_colleague_neither_approves_nor_declines(self, api: Api, version: ModelVersion) -> None:
        bob = bearer(made_for(api(Scope.ADMIN), "bob"))
        for decision in (YES, NO):
            status, why = said(bob.put(VERSION, decision))
            assert status == 403
            assert "alice made this token of bob, so both can use it; bob decides with a session of the" in why
        version.refresh_from_db()
        assert version.approval == "unreviewed"

    def test_a_token_made_with_it_is_the_makers_as_well(self, api: Api, version: ModelVersion) -> None:
        bob = bearer(made_for(api(Scope.ADMIN), "bob"))
        again = bob.post("/api/v1/tokens", {"name": "washed", "scope": "write"}).json()
        assert again["made_by"] == "alice"
        assert bearer(again["token"]).put(VERSION, YES).status_code == 403

    def test_who_made_the_token_that_registered_it_does_not_approve(self, api: Api, version: ModelVersion) -> None:
        alice = api(Scope.ADMIN)
        made_for(alice, "ci", "push")
        ModelVersion.objects.update(created_by="ci (token push)")
        status, why = said(alice.put(VERSION, YES))
        assert status == 403
        assert "alice made the token of ci (token push), who registered it, and it takes four eyes" in why
        assert not versions_to_approve(only=Q(), approver=Approver("alice"), limit=5)
        assert versions_to_approve(only=Q(), approver=Approver("bob"), limit=5) == [version]
        assert api(Scope.WRITE, "bob").put(VERSION, YES).status_code == 200

    def test_who_has_an_own_token_approves_as_before(self, api: Api, version: ModelVersion) -> None:
        assert api(Scope.WRITE, "bob").put(VERSION, YES).json()["approval"]["by"] == "bob"

    def test_the_page_signed_in_with_it_offers_no_decision(self, api: Api, version: ModelVersion) -> None:
        browser = Client()
        browser.post("/signin/", {"token": made_for(api(Scope.ADMIN), "bob")})
        page = browser.get("/models/digits/versions/1/").content.decode()
        assert marked(page, "token-decides-nothing")
        assert 'id="approve"' not in page
        assert 'id="decline"' not in page
        assert browser.post("/models/digits/versions/1/approval", YES).status_code == 403


class TestRollouts:
    def test_the_starter_does_not_approve_as_a_colleague(self, api: Api) -> None:
        alice = api(Scope.ADMIN)
        rollout = rollout_by(alice)
        bob = bearer(made_for(alice, "bob"))
        url = f"/api/v1/rollouts/{rollout.pk}"
        assert said(bob.post(f"{url}/approvals", {}))[0] == 403
        assert said(bob.post(f"{url}/reject", {"comment": "in his name"}))[0] == 403
        shown = bob.get(f"{url}/approvals").json()
        assert shown["may_approve"] is False
        assert shown["why_not"].startswith("alice made this token of bob")
        assert not Approval.objects.exists()
        assert api(Scope.WRITE, "bob").post(f"{url}/approvals", {}).status_code == 201

    def test_a_rollout_started_as_a_colleague_is_not_approved_by_who_made_the_token(self, api: Api) -> None:
        alice = api(Scope.ADMIN)
        rollout = rollout_by(bearer(made_for(alice, "bob")))
        url = f"/api/v1/rollouts/{rollout.pk}/approvals"
        status, why = said(alice.post(url, {}))
        assert status == 403
        assert why.startswith("alice made the token of bob (token lent), who started the rollout")
        assert alice.get(url).json()["why_not"] == why
        assert api(Scope.WRITE, "carol").post(url, {}).status_code == 201

    def test_two_approvals_are_not_of_one_person_and_a_lent_token(self, api: Api) -> None:
        two = {**FOUR_EYES, "approval": {"approvals": 2}}
        alice = api(Scope.ADMIN)
        url = f"/api/v1/rollouts/{rollout_by(alice, two).pk}/approvals"
        assert alice.post(url, {}).status_code == 201
        assert bearer(made_for(alice, "bob")).post(url, {}).status_code == 403

    def test_one_approval_of_anybody_takes_any_token(self, api: Api) -> None:
        one = {**FOUR_EYES, "approval": {"approvals": 1}}
        alice = api(Scope.ADMIN)
        url = f"/api/v1/rollouts/{rollout_by(alice, one).pk}/approvals"
        assert bearer(made_for(alice, "bob")).post(url, {}).status_code == 201

    def test_the_pages_signed_in_with_it_offer_no_decision(self, api: Api) -> None:
        alice = api(Scope.ADMIN)
        rollout = rollout_by(alice)
        browser = Client()
        browser.post("/signin/", {"token": made_for(alice, "bob")})
        page = browser.get(f"/services/default/digits/rollouts/{rollout.pk}/").content.decode()
        assert 'id="approve"' not in page
        assert 'id="reject"' not in page
        assert "Alice made this token of bob" in page
        assert browser.post(f"/rollouts/{rollout.pk}/approvals/approve").status_code == 403


class TestItIsShown:
    def test_making_one_is_an_event_and_in_the_audit_log(self, api: Api) -> None:
        scenes.webhook("TokenMadeForAnother")
        alice = api(Scope.ADMIN)
        made_for(alice, "bob", scope="write")
        alice.post("/api/v1/tokens", {"name": "own", "scope": "read"})
        (delivery,) = WebhookDelivery.objects.all()
        assert delivery.payload["message"] == (
            "alice made the token lent with scope write for bob; it cannot approve or reject"
        )
        assert {"user": "bob", "by": "alice"}.items() <= delivery.payload.items()
        entries = AuditEntry.objects.filter(action="token.create", actor__startswith="alice").order_by("pk")
        assert [entry.detail for entry in entries] == [{"made_for_another_by": "alice"}, {}]

    def test_the_person_reads_who_made_it(self, api: Api) -> None:
        made_for(api(Scope.ADMIN), "bob")
        browser = Client()
        browser.post("/signin/", {"token": scenes.token(Scope.READ, "bob")})
        page = browser.get("/tokens/").content.decode()
        assert marked(page, "made-for-another")
        assert page.count("made by alice") == 1
        assert "made by alice for you" in page
        (mine,) = [row for row in api(Scope.READ, "bob").get("/api/v1/tokens").json()["results"] if row["made_by"]]
        assert (mine["name"], mine["made_by"]) == ("lent", "alice")

    def test_a_token_of_before_has_no_known_maker(self, api: Api) -> None:
        api(Scope.ADMIN)
        assert ApiToken.objects.get().made_by == ""
        assert not ApiToken.objects.get().made_for_another


@pytest.mark.parametrize(
    ("maker", "username", "expected"),
    [
        pytest.param(Approver("alice"), "bob", "alice", id="for another"),
        pytest.param(Approver("alice"), "alice", "", id="for oneself, not signed in"),
        pytest.param(Approver("alice", is_signed_in=True), "alice", "alice", id="for oneself, signed in"),
        pytest.param(Approver("bob", "alice"), "bob", "alice", id="with a lent token for its user"),
        pytest.param(Approver("bob", "alice"), "carol", "alice", id="with a lent token for a third"),
        pytest.param(Approver("bob", "alice"), "alice", "", id="with a lent token for its maker"),
    ],
)
def test_the_maker_of_a_token(maker: Approver, username: str, expected: str) -> None:
    assert token_by(maker, username) == expected
