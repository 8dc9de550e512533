"""Demands of teams and namespaces against deployers who would go round them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.demand import Demand
from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry
from accounts.services import teams
from accounts.services.demands import namespace_demand_set, team_demand_set
from common.errors import Conflict
from deployments.models import InferenceService, Rollout
from deployments.services import (
    policy_apply,
    rollout_abort,
    rollout_plan,
    rollout_retry,
    rollout_start,
    service_apply,
    service_plan,
)
from registry.models import RegisteredModel
from tests import scenes
from tests._support.page import marked

pytestmark = pytest.mark.django_db
Api = Callable[..., APIClient]
SERVICE = "/api/v1/services/default/digits"
REVIEWED = {"name": "reviewed", "approval": {"approvals": 2}, "steps": [{"weight": 10}]}


@pytest.fixture
def live(db: None) -> InferenceService:
    """A live service of team red with the policy `careful`, which asks for no approvals."""
    now = timezone.now()
    service = scenes.service()
    scenes.model_version(2)
    policy_apply(document=REVIEWED, name="reviewed", actor="test", now=now)
    teams.team_create(name="red", actor="test", now=now)
    teams.ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=now)
    return service


def demand(**what: Any) -> None:
    team_demand_set(team="red", demand=Demand("team red", **what), actor="ruth", now=timezone.now())


def of_namespace(**what: Any) -> None:
    found = Demand("namespace default", **what)
    namespace_demand_set(namespace="default", demand=found, actor="ruth", now=timezone.now())


def file(version: int = 2, policy: str | None = "careful") -> dict[str, Any]:
    model = {"modelFormat": {"name": "onnx"}, "storageUri": f"models:/digits/{version}"}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "digits"},
        "spec": {"predictor": {"model": model}} | ({"rollout": {"policy": policy}} if policy else {}),
    }


def start(version: int = 2, policy: str | None = None, begin: Any = rollout_start) -> Any:
    said = {"namespace": "default", "name": "digits", "actor": "dan", "now": timezone.now()}
    return begin(version=str(version), policy=policy, **said)


def put(document: dict[str, Any], apply: Any = service_apply, name: str = "digits") -> Any:
    document = {**document, "metadata": {"name": name}}
    return apply(document=document, namespace="default", name=name, actor="dan", now=timezone.now())


@pytest.mark.usefixtures("live")
class TestPolicies:
    @pytest.mark.parametrize("demanded", [demand, of_namespace], ids=["team", "namespace"])
    def test_every_way_to_a_rollout_is_refused(self, demanded: Callable[..., None]) -> None:
        demanded(policies=("reviewed",))
        ways: list[Callable[[], object]] = [
            start,
            lambda: start(begin=rollout_plan),
            lambda: put(file()),
            lambda: put(file(), service_plan),
            lambda: put(file(policy=None)),
            lambda: put(file(), name="another"),
            lambda: put(file(1, policy=None)),
        ]
        for way in ways:
            with pytest.raises(Conflict, match="demands the policy reviewed of its services, and th"):
                way()
        assert not Rollout.objects.exists()
        assert InferenceService.objects.count() == 1

    def test_the_demanded_one_is_used(self) -> None:
        demand(policies=("reviewed",))
        assert start(policy="reviewed").policy_name == "reviewed"
        assert put(file(policy="reviewed"), name="another")[1]

    def test_what_serves_goes_on_and_the_same_file_changes_nothing(self, live: InferenceService) -> None:
        before = InferenceService.objects.get().document
        demand(policies=("reviewed",))
        assert put(before)[1] is False
        live.refresh_from_db()
        assert live.phase == "Ready"

    def test_both_demands_hold(self) -> None:
        demand(policies=("careful", "reviewed"))
        of_namespace(approvals=2)
        with pytest.raises(Conflict, match="namespace default demands 2 approvals of a rollout, and this one is care"):
            start()
        assert start(policy="reviewed")

    def test_another_teams_demand_does_not_hold(self) -> None:
        teams.team_create(name="blue", actor="test", now=timezone.now())
        team_demand_set(team="blue", demand=Demand("team blue", ("other",)), actor="x", now=timezone.now())
        assert start()


@pytest.mark.usefixtures("live")
class TestApprovals:
    def test_a_policy_that_was_weakened_is_refused(self) -> None:
        demand(policies=("reviewed",), approvals=2)
        policy_apply(document={**REVIEWED, "approval": {}}, name="reviewed", actor="dan", now=timezone.now())
        with pytest.raises(
            Conflict, match="team red demands 2 approvals of a rollout, and this one is reviewed, which"
        ):
            start(policy="reviewed")

    def test_a_rollout_of_before_is_not_retried(self) -> None:
        rollout = start()
        rollout_abort(rollout_id=rollout.pk, actor="dan", now=timezone.now())
        demand(approvals=1)
        with pytest.raises(Conflict, match="team red demands 1 approval of a rollout"):
            rollout_retry(rollout_id=rollout.pk, actor="dan", now=timezone.now())

    def test_a_stopped_service_does_not_get_another_version_without_a_rollout(self, live: InferenceService) -> None:
        demand(approvals=2)
        InferenceService.objects.update(live_at=None, stopped=True)
        live.revisions.update(served_until=timezone.now())
        with pytest.raises(Conflict, match="digits version 2 would come without a rollout; let it serve first"):
            put(file(policy="reviewed"))
        assert put(file(1, policy="reviewed"))[1] is False

    def test_through_the_api_the_sentence_is_a_409(self, api: Api) -> None:
        demand(approvals=2)
        answer = api(Scope.ADMIN).post(f"{SERVICE}/rollouts", {"version": "2"}, format="json")
        assert answer.status_code == 409
        assert "team red demands 2 approvals of a rollout" in answer.json()["error"]["message"]


@pytest.mark.usefixtures("live")
class TestApproversWhoSignedIn:
    def test_a_rollout_waits_for_them(self, api: Api) -> None:
        demand(signed_in=True)
        url = f"/api/v1/rollouts/{start(policy='reviewed').pk}"
        bob = api(Scope.WRITE, "bob")
        refused = bob.post(f"{url}/approvals", {})
        assert refused.status_code == 403
        assert refused.json()["error"]["message"].startswith(
            "team red demands that approvers sign in themselves, and bob did not for this token; sign in at the"
        )
        assert bob.get(f"{url}/approvals").json()["why_not"] == refused.json()["error"]["message"]
        assert bob.post(f"{url}/reject", {"comment": "no"}).status_code == 403
        ApiToken.objects.filter(user__username="bob").update(is_session=True)
        assert bob.post(f"{url}/approvals", {}).status_code == 201

    def test_a_token_that_one_made_in_such_a_session_counts(self, api: Api) -> None:
        demand(signed_in=True)
        url = f"/api/v1/rollouts/{start(policy='reviewed').pk}/approvals"
        browser = Client()
        browser.post("/signin/", {"token": scenes.token(Scope.ADMIN, "bob")})
        ApiToken.objects.filter(name="bob").update(is_session=True)
        page = browser.post("/tokens/", {"name": "cli", "scope": "write"}).content.decode()
        secret = page.split('id="made-token">')[1].split("<")[0]
        bob = APIClient()
        bob.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
        assert bob.post(url, {}).status_code == 201

    def test_versions_of_the_teams_models_are_decided_by_them(self, api: Api) -> None:
        demand(signed_in=True)
        teams.ownership_set(team="red", kind=Owned.MODEL, name="digits", actor="test", now=timezone.now())
        RegisteredModel.objects.update(requires_approval=True)
        bob, url = api(Scope.WRITE, "bob"), "/api/v1/models/digits/versions/2/approval"
        for decision in ({"state": "approved"}, {"state": "declined", "comment": "no"}):
            assert bob.put(url, decision).status_code == 403
        ApiToken.objects.filter(user__username="bob").update(is_session=True)
        assert bob.put(url, {"state": "approved"}).status_code == 200


@pytest.mark.usefixtures("live")
class TestSettingOne:
    URL = "/api/v1/teams/red/demand"
    ASKED = {"policies": ["reviewed"], "approvals": 2, "signed_in": True, "digests": True}

    def test_it_is_set_shown_lifted_and_logged(self, api: Api) -> None:
        admin = api(Scope.ADMIN)
        assert admin.get(self.URL).json() == {
            "of": "team red",
            "policies": [],
            "approvals": 0,
            "signed_in": False,
            "digests": False,
        }
        for _ in range(2):
            assert admin.put(self.URL, self.ASKED, format="json").json() == {"of": "team red", **self.ASKED}
        assert admin.get(self.URL).json() == {"of": "team red", **self.ASKED}
        assert admin.put(self.URL, {}, format="json").json()["approvals"] == 0
        entries = AuditEntry.objects.filter(action="demand.set", target="teams/red/demand").order_by("pk")
        assert [(entry.before, entry.after) for entry in entries] == [(None, self.ASKED), (self.ASKED, None)]
        assert start()

    def test_a_wrong_one_is_refused(self, api: Api) -> None:
        for wrong in ({"approvals": 21}, {"policies": ["No Name"]}, {"policies": ["a", "a"]}, {"aprovals": 2}):
            assert api(Scope.ADMIN).put(self.URL, wrong, format="json").status_code == 400
        assert api(Scope.ADMIN).put("/api/v1/teams/no/demand", {}, format="json").status_code == 404

    def test_on_the_page_of_the_team(self, api: Api) -> None:
        teams.member_set(team="red", username="ruth", role=Role.ADMIN, actor="test", now=timezone.now())
        browser = Client()
        browser.post("/signin/", {"token": scenes.token(Scope.ADMIN, "ruth")})
        assert marked(browser.get("/teams/red/").content.decode(), "demands-nothing")
        form = {"policies": "reviewed, careful", "approvals": "2", "signed_in": "yes", "digests": "yes"}
        assert browser.post("/teams/red/demand", form).status_code == 302
        assert browser.post("/teams/red/demand", {"namespace": "default", "approvals": "3"}).status_code == 302
        shown = browser.get("/teams/red/").content.decode()
        assert (
            "the policies reviewed, careful; 2 approvals of each rollout; approvers who signed in themselves" in shown
        )
        assert "namespace default</span>" in shown
        for wrong, status in (({"approvals": "many"}, 400), ({"namespace": "elsewhere"}, 404)):
            assert browser.post("/teams/red/demand", wrong).status_code == status
        api(Scope.ADMIN).put(self.URL, {}, format="json")
        dan = Client()
        teams.member_set(team="red", username="dan", role=Role.DEPLOYER, actor="test", now=timezone.now())
        dan.post("/signin/", {"token": scenes.token(Scope.ADMIN, "dan")})
        assert 'name="approvals"' not in dan.get("/teams/red/").content.decode()

    def test_a_deployer_sets_none(self, api: Api) -> None:
        teams.member_set(team="red", username="dan", role=Role.DEPLOYER, actor="test", now=timezone.now())
        dan = api(Scope.ADMIN, "dan")
        teams.member_set(team="default", username="dan", role=Role.DEPLOYER, actor="test", now=timezone.now())
        for url in (self.URL, "/api/v1/namespaces/default/demand"):
            assert dan.put(url, {}, format="json").status_code == 403
            assert dan.get(url).status_code == 200
