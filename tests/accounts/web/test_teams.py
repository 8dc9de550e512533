"""The pages of teams."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry, Membership, Ownership, Team
from accounts.services import teams
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page

HTMX = {"HX-Request": "true"}
ACTIONS = {
    "/teams/create": {"name": "blue"},
    "/teams/red/delete": {},
    "/teams/red/members": {"user": "new", "role": "viewer"},
    "/teams/red/members/remove": {"user": "rita"},
    "/teams/red/owned/give": {"kind": "model", "name": "digits"},
    "/teams/red/owned/take": {"kind": "namespace", "name": "prod"},
}
OF_THE_TEAM = {"/teams/red/members", "/teams/red/members/remove"}


@pytest.fixture
def owned(browser: Browser) -> None:
    teams.ownership_set(team="red", kind=Owned.NAMESPACE, name="prod", actor="test", now=timezone.now())


def test_one_sees_ones_own_teams_and_an_administrator_all(browser: Browser) -> None:
    assert ">default</a>" not in page(browser("red", Role.VIEWER), "/teams/")
    everything = page(browser("default", Role.ADMIN), "/teams/")
    assert ">default</a>" in everything
    assert ">red</a>" in everything
    assert "New team" in everything


def test_another_team_is_not_there(browser: Browser) -> None:
    teams.team_create(name="blue", actor="test", now=timezone.now())
    assert browser("red", Role.ADMIN).get("/teams/blue/").status_code == 404


@pytest.mark.parametrize(
    ("role", "scope", "manages"),
    [
        pytest.param(Role.ADMIN, Scope.ADMIN, True, id="an admin of the team manages it"),
        pytest.param(Role.ADMIN, Scope.WRITE, False, id="not with a narrower token"),
        pytest.param(Role.DEPLOYER, Scope.ADMIN, False, id="a deployer only looks"),
        pytest.param(Role.VIEWER, Scope.ADMIN, False, id="a viewer only looks"),
    ],
)
def test_forms_are_there_for_who_may_use_them(browser: Browser, role: Role, scope: Scope, manages: bool) -> None:
    shown = page(browser("red", role, scope), "/teams/red/")
    assert "rita" in shown
    assert ("Add member" in shown) is manages
    assert not marked(shown, "give")


@pytest.mark.parametrize("path", ACTIONS)
@pytest.mark.parametrize("who", ["deployer of the team", "admin of the team", "admin of another", "administrator"])
def test_every_form_asks_for_the_right_role(browser: Browser, owned: None, path: str, who: str) -> None:
    teams.team_create(name="other", actor="test", now=timezone.now())
    client = {
        "deployer of the team": lambda: browser("red", Role.DEPLOYER),
        "admin of the team": lambda: browser("red", Role.ADMIN),
        "admin of another": lambda: browser("other", Role.ADMIN),
        "administrator": lambda: browser("default", Role.ADMIN),
    }[who]()
    if path == "/teams/red/delete":
        Ownership.objects.all().delete()
    may = who == "administrator" or (who == "admin of the team" and path in OF_THE_TEAM)
    status = client.post(path, ACTIONS[path]).status_code
    assert status == 302 if may else status in (403, 404)


def test_a_member_gets_another_role_and_goes(browser: Browser) -> None:
    client = browser("red", Role.ADMIN)
    answer = client.post("/teams/red/members", {"user": " new ", "role": "deployer"}, headers=HTMX)
    assert (answer.status_code, answer["HX-Redirect"]) == (204, "/teams/red/")
    assert "new is deployer of red now." in page(client, "/teams/red/")
    assert Membership.objects.get(user__username="new").role == "deployer"
    client.post("/teams/red/members/remove", {"user": "new"})
    assert not Membership.objects.filter(user__username="new").exists()
    assert AuditEntry.objects.filter(action="member.delete", actor="dora (token d)").exists()


@pytest.mark.parametrize(
    ("path", "asked", "told"),
    [
        ("/teams/red/members", {"user": "x", "role": "king"}, "expected one of viewer, deployer, admin"),
        ("/teams/red/members", {"user": "", "role": "viewer"}, "expected a name"),
        ("/teams/red/owned/give", {"kind": "cluster", "name": "x"}, "expected one of namespace, model"),
        ("/teams/red/delete", {}, "owns namespace prod; give that to another team first"),
        ("/teams/create", {"name": "Not A Label"}, "Not A Label"),
    ],
)
def test_what_is_wrong_is_told_where_notices_are(
    browser: Browser, owned: None, path: str, asked: dict[str, str], told: str
) -> None:
    answer = browser().post(path, asked, headers=HTMX)
    assert answer.status_code in (400, 409)
    assert answer["HX-Retarget"] == "#notices"
    assert told in answer.content.decode()


def test_what_was_given_can_be_taken_away(browser: Browser) -> None:
    client = browser()
    client.post("/teams/red/owned/give", {"kind": "model", "name": "digits"})
    assert "<code>digits</code>" in page(client, "/teams/red/")
    client.post("/teams/red/owned/take", {"kind": "model", "name": "digits"})
    assert not Ownership.objects.exists()
    client.post("/teams/red/delete")
    assert not Team.objects.filter(name="red").exists()


@pytest.mark.parametrize("path", ["/teams/", "/teams/red/"])
def test_the_number_of_queries_does_not_grow(
    browser: Browser, django_assert_max_num_queries: DjangoAssertNumQueries, path: str, owned: None
) -> None:
    client, now = browser(), timezone.now()
    more: list[Callable[[int], object]] = [
        lambda n: teams.team_create(name=f"t{n}", actor="test", now=now),
        lambda n: teams.member_set(team="red", username=f"u{n}", role=Role.VIEWER, actor="test", now=now),
        lambda n: teams.ownership_set(team="red", kind=Owned.MODEL, name=f"m{n}", actor="test", now=now),
    ]
    for number in range(20):
        for add in more:
            add(number)
    with django_assert_max_num_queries(10):
        assert client.get(path).status_code == 200


def test_who_is_not_signed_in_is_asked_to(browser: Browser) -> None:
    assert Client().get("/teams/")["Location"] == "/signin/?next=/teams/"
