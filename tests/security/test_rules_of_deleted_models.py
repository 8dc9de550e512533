"""Rules of a model against who deletes it and pushes it again: they stay with the name, whoever pushes."""

from collections.abc import Callable
from threading import Thread

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from accounts.services import teams, user_get_or_create
from integrations.artifacts.store import StoredArtifact
from registry.models import KeptRules, ModelVersion, RegisteredModel
from registry.services import model_delete, version_register
from registry.services.governance import alias_protect, approval_require
from tests import scenes
from tests._support.page import marked

pytestmark = pytest.mark.django_db
Api = Callable[..., APIClient]
MODEL = "/api/v1/models/digits"
KEPT = f"{MODEL}/kept-rules"


def register(content: str = "1", actor: str = "mallory (token ci)") -> ModelVersion:
    """Push a version, as an upload and an import do; it is READY."""
    artifact = StoredArtifact(f"sha256:{content:0>64}", f"file:///artifacts/{content}", 10, {})
    version, _ = version_register(
        model="digits", artifact=artifact, source_name="model.onnx", now=timezone.now(), actor=actor
    )
    ModelVersion.objects.filter(pk=version.pk).update(status="READY", next_check_at=None)
    return version


@pytest.fixture
def ruled(db: None) -> RegisteredModel:
    """A model of team red that requires approval and protects an alias, with a version."""
    now = timezone.now()
    for team in ("red", "blue"):
        teams.team_create(name=team, actor="test", now=now)
    teams.ownership_set(team="red", kind=Owned.MODEL, name="digits", actor="test", now=now)
    register()
    approval_require(model="digits", is_required=True, now=now, actor="test")
    alias_protect(model="digits", name="champion", now=now, actor="test")
    return RegisteredModel.objects.get()


def member(api: Api, username: str, team: str, role: Role, scope: Scope = Scope.ADMIN) -> APIClient:
    user_get_or_create(username=username, default_role=None, now=timezone.now())
    teams.member_set(team=team, username=username, role=role, actor="test", now=timezone.now())
    return api(scope, username)


def deleted(api: Api) -> APIClient:
    """Delete the model as an admin of its team, and return him."""
    ruth = member(api, "ruth", "red", Role.ADMIN)
    assert ruth.delete(MODEL).status_code == 204
    return ruth


@pytest.mark.usefixtures("ruled")
class TestDeletion:
    def test_a_deployer_of_the_team_is_refused_and_reads_which_rules(self, api: Api) -> None:
        answer = member(api, "dan", "red", Role.DEPLOYER).delete(MODEL)
        assert answer.status_code == 403
        assert answer.json()["error"]["message"] == (
            "model 'digits' requires approval of its versions and protects the alias champion: only an admin of team "
            "red or of the installation may delete it"
        )
        assert RegisteredModel.objects.exists()

    def test_one_rule_is_enough(self, api: Api) -> None:
        for rule, words in (
            ({"requires_approval": False}, "protects the alias champion:"),
            ({"requires_approval": True, "protected_aliases": []}, "requires approval of its versions:"),
        ):
            RegisteredModel.objects.update(**rule)
            answer = member(api, "dan", "red", Role.DEPLOYER).delete(MODEL)
            assert (answer.status_code, f"'digits' {words}" in answer.json()["error"]["message"]) == (403, True)

    def test_an_admins_token_with_a_narrower_scope_is_refused(self, api: Api) -> None:
        assert member(api, "ruth", "red", Role.ADMIN, Scope.WRITE).delete(MODEL).status_code == 403

    def test_without_rules_a_deployer_deletes_as_before(self, api: Api) -> None:
        RegisteredModel.objects.update(requires_approval=False, protected_aliases=[])
        assert member(api, "dan", "red", Role.DEPLOYER).delete(MODEL).status_code == 204
        assert not KeptRules.objects.exists()

    def test_the_page_offers_no_deletion_that_is_refused(self, api: Api) -> None:
        for username, role, offered in (("dan", Role.DEPLOYER, False), ("ruth", Role.ADMIN, True)):
            member(api, username, "red", role)
            browser = Client()
            browser.post("/signin/", {"token": scenes.token(Scope.ADMIN, username)})
            page = browser.get("/models/digits/").content.decode()
            assert ("/models/digits/delete" in page) is offered
            assert bool(marked(page, "admins-delete")) is not offered
            assert browser.post("/models/digits/delete").status_code == (302 if offered else 403)


@pytest.mark.usefixtures("ruled")
class TestTheNextModelOfTheName:
    @pytest.mark.parametrize("is_pushed", [True, False], ids=["pushed", "created"])
    def test_it_begins_with_the_rules(self, api: Api, is_pushed: bool) -> None:
        deleted(api)
        dan = member(api, "dan", "red", Role.DEPLOYER)
        if is_pushed:
            register("2")
        else:
            assert dan.post("/api/v1/models", {"name": "digits"}).json()["requires_approval"] is True
        found = dan.get(MODEL).json()
        assert (found["requires_approval"], found["protected_aliases"]) == (True, ["champion"])
        assert not KeptRules.objects.exists()
        assert dan.delete(MODEL).status_code == 403
        (entry,) = AuditEntry.objects.filter(action="model.restore_rules")
        assert entry.after == {"requires_approval": True, "protected_aliases": ["champion"]}
        assert entry.detail == {}

    def test_its_first_version_is_held_to_them(self, api: Api) -> None:
        deleted(api)
        dan = member(api, "dan", "red", Role.DEPLOYER)
        version = register("2")
        assert "is not approved, which its model asks for" in ModelVersion.objects.get(pk=version.pk).unfit
        assert dan.put(f"{MODEL}/aliases/champion", {"version": 1}).status_code == 403

    def test_they_survive_any_number_of_deletions(self, api: Api) -> None:
        for content in ("2", "3"):
            deleted(api)
            register(content)
        assert RegisteredModel.objects.get().requires_approval

    def test_another_team_does_not_take_the_name(self, api: Api) -> None:
        deleted(api)
        bill = member(api, "bill", "blue", Role.ADMIN)
        assert bill.post("/api/v1/models", {"name": "digits"}).status_code == 404
        pushed = bill.post(f"{MODEL}/versions?filename=model.onnx", b"x", content_type="application/octet-stream")
        assert pushed.status_code == 404
        assert bill.get(KEPT).status_code == 404
        assert bill.delete(KEPT).status_code == 404
        assert bill.get("/api/v1/kept-rules").json()["results"] == []
        assert KeptRules.objects.exists()

    def test_a_name_given_to_another_team_keeps_the_rules_of_the_first(self, api: Api) -> None:
        deleted(api)
        teams.ownership_set(team="blue", kind=Owned.MODEL, name="digits", actor="root", now=timezone.now())
        bill = member(api, "bill", "blue", Role.ADMIN)
        (row,) = bill.get("/api/v1/kept-rules").json()["results"]
        assert (row["team"], row["owner"]) == ("red", "blue")
        assert bill.delete(KEPT).status_code == 403
        assert bill.post("/api/v1/models", {"name": "digits"}).json()["requires_approval"] is True
        (entry,) = AuditEntry.objects.filter(action="model.restore_rules")
        assert entry.detail == {"team_at_deletion": "red", "team": "blue"}


@pytest.mark.usefixtures("ruled")
class TestRemoval:
    def test_an_admin_of_the_team_sees_and_removes_them(self, api: Api) -> None:
        ruth = deleted(api)
        (row,) = ruth.get("/api/v1/kept-rules").json()["results"]
        assert row.items() >= {"name": "digits", "protected_aliases": ["champion"], "team": "red"}.items()
        assert ruth.get(KEPT).json() == row
        dan = member(api, "dan", "red", Role.DEPLOYER)
        assert [dan.get(KEPT).status_code, dan.delete(KEPT).status_code] == [403, 403]
        assert ruth.delete(KEPT).status_code == 204
        assert ruth.delete(KEPT).status_code == 404
        register("2")
        assert not RegisteredModel.objects.get().rules
        (entry,) = AuditEntry.objects.filter(action="model.remove_rules")
        assert (entry.target, entry.before["team"]) == ("models/digits", "red")

    def test_the_page_has_them_for_admins_alone(self, api: Api) -> None:
        deleted(api)
        pages = {}
        for username, role in (("dan", Role.DEPLOYER), ("ruth", Role.ADMIN)):
            member(api, username, "red", role)
            pages[username] = Client()
            pages[username].post("/signin/", {"token": scenes.token(Scope.ADMIN, username)})
        assert 'id="kept-rules"' not in pages["dan"].get("/models/").content.decode()
        shown = pages["ruth"].get("/models/").content.decode()
        assert "requires approval of its versions and protects the alias champion" in shown
        assert pages["dan"].post("/models/digits/kept-rules/remove").status_code == 403
        assert pages["ruth"].post("/models/digits/kept-rules/remove").status_code == 302
        assert not KeptRules.objects.exists()

    def test_those_of_a_name_given_away_are_removed_by_the_installation_alone(self, api: Api) -> None:
        deleted(api)
        teams.ownership_set(team="blue", kind=Owned.MODEL, name="digits", actor="root", now=timezone.now())
        member(api, "bill", "blue", Role.ADMIN)
        browser = Client()
        browser.post("/signin/", {"token": scenes.token(Scope.ADMIN, "bill")})
        assert "belonged to team red, now to blue" in browser.get("/models/").content.decode()
        assert browser.post("/models/digits/kept-rules/remove").status_code == 403
        assert api(Scope.ADMIN, "alice").delete(KEPT).status_code == 204


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite lets no two transactions write at a time")
@pytest.mark.usefixtures("ruled")
def test_a_push_beside_the_deletion_finds_them() -> None:
    """Whichever of the two is first, no model is there without the rules at the end."""

    def push(number: int) -> None:
        register(str(number))
        connection.close()

    for attempt in range(5):
        pushing = [Thread(target=push, args=(10 * attempt + each,)) for each in (2, 3, 4)]
        for thread in pushing:
            thread.start()
        model_delete(name="digits", now=timezone.now(), actor="ruth", by_admin=True)
        for thread in pushing:
            thread.join()
        register(f"{attempt}9")
        assert RegisteredModel.objects.get().requires_approval
        assert RegisteredModel.objects.get().protected_aliases == ["champion"]
