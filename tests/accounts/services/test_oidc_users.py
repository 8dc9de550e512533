"""Who comes from a provider: whose user that is, and what the claims must say."""

from datetime import timedelta
from importlib import import_module
from io import StringIO
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import AnonymousUser
from django.core.management import CommandError, call_command
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django import Settings

from accounts.domain.group_roles import parse
from accounts.domain.roles import Role
from accounts.models import ApiToken, AuditEntry, Identity, Membership, User
from accounts.selectors import token_of_session
from accounts.services import session_signout, teams
from accounts.services.oidc_users import Person, person_of, person_signin, sessions_forget
from common.errors import NotAuthenticated
from tests import scenes

ALICE = Person(issuer="https://sso.example", subject="1", username="alice", groups=None)


def browser_request() -> HttpRequest:
    request = RequestFactory().get("/")
    request.session = import_module(django_settings.SESSION_ENGINE).SessionStore()
    request.user = AnonymousUser()
    return request


def signed_in(person: Person) -> tuple[HttpRequest, ApiToken]:
    request = browser_request()
    return request, person_signin(request=request, person=person, now=timezone.now())


def claims(**more: Any) -> Person:
    said = {"sub": "1", "preferred_username": "alice", **more}
    return person_of(said, issuer="https://sso.example", username_claim="preferred_username", groups_claim="groups")


def test_groups_may_be_a_list_or_one_text_and_are_none_where_nothing_is_said() -> None:
    assert claims(groups=["a", "b"]).groups == {"a", "b"}
    assert claims(groups="a").groups == {"a"}
    assert claims().groups == frozenset()
    assert claims(groups={"a": 1}).groups == frozenset()


@pytest.mark.parametrize("name", [None, "", "  ", 7])
def test_without_a_name_the_claim_is_named(name: object) -> None:
    with pytest.raises(NotAuthenticated, match="did not say 'preferred_username'"):
        claims(preferred_username=name)


def test_an_address_that_the_provider_did_not_verify_is_nobodys_name() -> None:
    said = {"sub": "1", "email": "alice@example.com", "email_verified": False}
    with pytest.raises(NotAuthenticated, match="not verified"):
        person_of(said, issuer="i", username_claim="email", groups_claim="")


@pytest.mark.django_db
def test_a_user_that_a_team_has_already_is_taken_with_its_roles() -> None:
    now = timezone.now()
    scenes.token()
    teams.team_create(name="vision", actor="test", now=now)
    teams.member_set(team="vision", username="alice", role=Role.DEPLOYER, actor="test", now=now)
    signed_in(ALICE)
    assert Membership.objects.get(user__username="alice").team.name == "vision"


@pytest.mark.django_db
def test_an_account_keeps_its_user_under_a_new_name_and_the_name_goes_to_no_other_account() -> None:
    _, first = signed_in(ALICE)
    _, renamed = signed_in(Person("https://sso.example", "1", "alice.b", None))
    assert renamed.user == first.user
    with pytest.raises(NotAuthenticated, match="belongs to another account"):
        signed_in(Person("https://sso.example", "2", "alice", None))
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_a_name_that_is_freed_goes_to_the_next_account_and_its_sessions_end() -> None:
    _, token = signed_in(ALICE)
    call_command("user_free", "alice", stdout=StringIO())
    token.refresh_from_db()
    assert not token.is_live(timezone.now())
    _, other = signed_in(Person("https://sso.example", "2", "alice", None))
    assert other.user == token.user
    with pytest.raises(CommandError, match="no user 'bob' who signed in at a provider"):
        call_command("user_free", "bob")


@pytest.mark.django_db
def test_a_new_provider_takes_the_users_over_by_name() -> None:
    _, first = signed_in(ALICE)
    _, moved = signed_in(Person("https://new.example", "x", "alice", None))
    assert moved.user == first.user
    assert Identity.objects.get().issuer == "https://new.example"
    assert AuditEntry.objects.filter(action="user.identify").latest("pk").before == {
        "issuer": "https://sso.example",
        "subject": "1",
    }


@pytest.mark.django_db
def test_who_is_switched_off_is_refused_and_leaves_no_trace() -> None:
    User.objects.create(username="alice", is_active=False)
    with pytest.raises(NotAuthenticated, match="switched off"):
        signed_in(ALICE)
    assert not ApiToken.objects.exists()
    assert not Identity.objects.exists()


@pytest.mark.django_db
def test_a_user_is_switched_off_with_all_sessions_and_tokens_and_on_again() -> None:
    request, _ = signed_in(ALICE)
    for state in ("off", "off", "on"):
        call_command("user_switch", "alice", state, stdout=StringIO())
        assert (token_of_session(request=request, now=timezone.now()) is not None) == (state == "on")
    assert [entry.after for entry in AuditEntry.objects.filter(action="user.switch").order_by("pk")] == [
        {"active": False},
        {"active": True},
    ]
    with pytest.raises(CommandError, match="no user 'bob'"):
        call_command("user_switch", "bob", "off")


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["none", "viewer", "deployer"])
def test_a_new_user_has_the_default_role(settings: Settings, role: str) -> None:
    settings.OIDC_DEFAULT_ROLE = role
    signed_in(ALICE)
    assert list(Membership.objects.values_list("role", flat=True)) == ([] if role == "none" else [role])


@pytest.mark.django_db
def test_the_last_administrator_stays_whatever_the_groups_say(settings: Settings) -> None:
    settings.OIDC_GROUP_ROLES = parse(["ops=default:admin"])
    signed_in(Person("https://sso.example", "1", "alice", frozenset({"ops"})))
    signed_in(Person("https://sso.example", "1", "alice", frozenset()))
    assert Membership.objects.get().role == Role.ADMIN


@pytest.mark.django_db
def test_the_session_ends_by_signing_out_and_its_token_goes_a_day_after_its_end(settings: Settings) -> None:
    settings.OIDC_SESSION = timedelta(hours=8)
    request, token = signed_in(ALICE)
    now = timezone.now()
    assert token_of_session(request=request, now=now) == token
    assert token_of_session(request=request, now=now + timedelta(hours=9)) is None
    session_signout(request=request, now=now)
    assert not ApiToken.objects.get().is_live(now)
    assert sessions_forget(now=now + timedelta(hours=31)) == 0
    assert sessions_forget(now=now + timedelta(hours=33)) == 1


@pytest.mark.django_db
def test_without_a_provider_nothing_is_there(client: Client) -> None:
    assert [client.get(f"/signin/provider/{part}").status_code for part in ("", "back", "signout")] == [404] * 3
    assert "signin/provider" not in client.get("/signin/").content.decode()


@pytest.mark.django_db
def test_sign_in_by_token_can_be_switched_off(client: Client, settings: Settings) -> None:
    settings.TOKEN_SIGNIN = False
    settings.OIDC_ISSUER = "https://sso.example"
    assert "API token" not in client.get("/signin/").content.decode()
    assert client.post("/signin/", {"token": scenes.token()}).status_code == 403
    assert client.get("/services/").status_code == 302


@pytest.mark.django_db
def test_who_has_no_role_is_told_so_and_can_sign_out(client: Client, settings: Settings) -> None:
    settings.OIDC_DEFAULT_ROLE = "none"
    request, _ = signed_in(ALICE)
    request.session.save()
    client.cookies[django_settings.SESSION_COOKIE_NAME] = str(request.session.session_key)
    answer = client.get("/")
    assert answer.status_code == 403
    assert "is no member; ask an administrator" in answer.content.decode()
    assert "Sign out" in answer.content.decode()
