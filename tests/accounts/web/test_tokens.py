"""The page of tokens."""

import re

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from accounts.services import token_revoke
from tests import scenes
from tests.accounts._support.pages import Browser, page

HTMX = {"HX-Request": "true"}
ASKED = {"name": "ci", "scope": "write", "user": "robot", "expires_in": "12h"}


def test_one_sees_ones_own_and_an_administrator_all(browser: Browser) -> None:
    own = page(browser("red", Role.VIEWER), "/tokens/")
    assert "dora" in own
    assert "root" not in own
    assert "New token" not in own
    assert "root" in page(browser(), "/tokens/")


def test_a_new_token_is_shown_once_and_opens_what_it_says(browser: Browser) -> None:
    client = browser()
    made = client.post("/tokens/", ASKED, headers=HTMX)
    secret = made.content.decode().split('id="made-token">')[1].split("<")[0]
    assert "<html" not in made.content.decode()
    rows = made.content.decode().split('id="tokens"')[1]
    assert "<td>ci<" in rows, "the list has it without a reload"
    assert secret not in rows
    assert 'name="name" required' in rows.split('id="token-form"')[1], "and the form is empty again"
    assert secret not in page(client, "/tokens/")
    token = ApiToken.objects.get(name="ci")
    assert (token.user.username, token.scope) == ("robot", "write")
    assert [str(role) for role in token.user.memberships.values_list("role", flat=True)] == ["deployer"]
    assert Client().post("/signin/", {"token": secret}).status_code == 302


def test_without_a_script_the_whole_page_shows_the_new_token(browser: Browser) -> None:
    shown = browser().post("/tokens/", {"name": "ci", "scope": "read"}).content.decode()
    assert "<html" in shown
    assert 'id="made-token">flt_' in shown


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"scope": "king"}, "expected one of read, write, admin"),
        ({"expires_in": "soon"}, "is no duration"),
        ({"name": ""}, "expected 1 to 100"),
    ],
)
def test_a_wrong_wish_is_refused(browser: Browser, changed: dict[str, str], told: str) -> None:
    answer = browser().post("/tokens/", {**ASKED, **changed}, headers=HTMX)
    assert (answer.status_code, told in answer.content.decode()) == (400, True)
    assert not ApiToken.objects.filter(name="ci").exists()


@pytest.mark.parametrize(
    ("team", "role", "scope"), [("red", Role.ADMIN, Scope.ADMIN), ("default", Role.ADMIN, Scope.WRITE)]
)
def test_only_administrators_make_tokens(browser: Browser, team: str, role: Role, scope: Scope) -> None:
    assert browser(team, role, scope).post("/tokens/", ASKED).status_code == 403


def test_one_revokes_ones_own_only(browser: Browser) -> None:
    client, others = browser("red", Role.DEPLOYER), ApiToken.objects.get(name="root").pk
    assert client.post(f"/tokens/{others}/revoke").status_code == 404
    own = ApiToken.objects.get(name="d").pk
    client.post(f"/tokens/{own}/revoke")
    assert ApiToken.objects.get(pk=own).revoked_at is not None
    assert client.get("/tokens/").status_code == 302, "it was the one of this session"
    assert browser("red", Role.VIEWER, Scope.READ).post(f"/tokens/{own}/revoke").status_code == 403


def test_the_state_of_each_token_is_told(browser: Browser) -> None:
    scenes.token(Scope.READ, "old")
    token_revoke(token=ApiToken.objects.get(name="old"), now=timezone.now(), actor="test")
    ApiToken.objects.filter(name="root").update(expires_at=timezone.now())
    shown = page(browser(), "/tokens/")
    assert [state for state in ("revoked", "expired", "live") if f'data-state="{state}"' in shown] == [
        "revoked",
        "expired",
        "live",
    ]


def test_many_tokens_come_page_by_page_with_as_few_queries(
    browser: Browser, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client = browser()
    for number in range(60):
        scenes.token(Scope.READ, f"t{number:02d}")
    with django_assert_max_num_queries(5):
        first = page(client, "/tokens/")
    assert "t59" in first
    assert "t09" not in first
    before = first.split("?before=")[1].split('"')[0]
    second = page(client, f"/tokens/?before={before}")
    assert "t09" in second
    assert "t10" not in second
    assert client.get("/tokens/?before=x").status_code == 400


@pytest.mark.parametrize(
    ("role", "scopes"),
    [
        pytest.param(Role.VIEWER, ["read"], id="viewer"),
        pytest.param(Role.DEPLOYER, ["read", "write"], id="deployer"),
        pytest.param(Role.ADMIN, ["read", "write", "admin"], id="admin of a team"),
    ],
)
def test_who_signed_in_at_the_provider_makes_tokens_for_himself_up_to_what_his_roles_allow(
    browser: Browser, role: Role, scopes: list[str]
) -> None:
    client = browser("red", role)
    assert client.post("/tokens/", {"name": "cli", "scope": "read"}).status_code == 403  # signed in with a token
    ApiToken.objects.filter(name="d").update(is_session=True)

    shown = page(client, "/tokens/")
    assert re.findall(r'<option value="(\w+)">', shown) == scopes
    assert "token-user" not in shown
    for scope in Scope:
        status = client.post("/tokens/", {"name": f"cli-{scope}", "scope": scope.value}).status_code
        assert status == (200 if scope.value in scopes else 400)
    assert set(ApiToken.objects.filter(name__startswith="cli").values_list("user__username", "scope")) == {
        ("dora", scope) for scope in scopes
    }
    assert client.post("/tokens/", {"name": "x", "scope": "read", "user": "root"}).status_code == 403
    longer = client.post("/tokens/", {"name": "x", "scope": "read", "expires_in": "9000h"})
    assert longer.status_code == 400
    assert "at most" in longer.content.decode()
    assert not ApiToken.objects.filter(name="x").exists()
