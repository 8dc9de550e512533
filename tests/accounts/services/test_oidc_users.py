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
from accounts.domain.person import Person, claims_wanted, person_of
from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry, Identity, Membership, User
from accounts.selectors import token_of_session
from accounts.services import session_signout, token_create
from accounts.services.oidc_users import person_signin, sessions_forget
from common.errors import NotAuthenticated
from tests import scenes

ALICE = Person(issuer="https://sso.example", subject="1", username="alice", groups=None)
DAY = timedelta(days=1)


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


@pytest.mark.parametrize("verified", [{}, *({"email_verified": said} for said in (False, None, "true", 1))])
def test_an_address_that_is_not_verified_names_no_new_user(verified: dict[str, object]) -> None:
    said = {"sub": "1", "email": "alice@example.com", **verified}
    assert "email_verified" in person_of(said, issuer="i", username_claim="email", groups_claim="").refusal
    assert claims(**verified).refusal == ""  # no address is used


def test_a_verified_address_is_a_name_and_the_claim_is_asked_for() -> None:
    said = {"sub": "1", "email": "alice@example.com", "email_verified": True}
    assert person_of(said, issuer="i", username_claim="email", groups_claim="").refusal == ""
    assert claims_wanted(username_claim="email", groups_claim="g") == {"email", "email_verified", "g"}
    assert claims_wanted(username_claim="preferred_username", groups_claim="") == {"preferred_username"}


@pytest.mark.django_db
def test_an_account_keeps_its_user_under_a_new_name_and_without_a_verified_address() -> None:
    _, first = signed_in(ALICE)
    _, renamed = signed_in(Person("https://sso.example", "1", "alice.b", None))
    _, unverified = signed_in(Person("https://sso.example", "1", "a@example.com", None, refusal="not verified"))
    assert renamed.user == first.user == unverified.user
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_who_is_unlinked_loses_sessions_and_tokens_and_the_name_goes_to_no_account() -> None:
    _, token = signed_in(ALICE)
    made = token_create(user=token.user, name="cli", scope=Scope.READ, lifetime=DAY, now=timezone.now(), actor="a")
    call_command("user_free", "alice", stdout=StringIO())
    assert not any(each.is_live(timezone.now()) for each in (ApiToken.objects.all()))
    assert ApiToken.objects.filter(pk=made.token.pk).exists()
    with pytest.raises(NotAuthenticated, match="is taken here by another user; if that is you, an administrator can"):
        signed_in(ALICE)
    with pytest.raises(CommandError, match="no user 'bob' who signed in at a provider"):
        call_command("user_free", "bob")


@pytest.mark.django_db
def test_a_name_that_reads_like_a_token_makes_no_user() -> None:
    with pytest.raises(NotAuthenticated, match="a name that cannot be used here: user begins with flt_"):
        signed_in(Person("https://sso.example", "1", "flt_abc", None))
    assert not User.objects.exists()


@pytest.mark.django_db
def test_who_is_switched_off_is_refused_and_leaves_no_trace() -> None:
    user = User.objects.create(username="alice", is_active=False)
    Identity.objects.create(user=user, issuer=ALICE.issuer, subject=ALICE.subject)
    with pytest.raises(NotAuthenticated, match="switched off"):
        signed_in(ALICE)
    assert not ApiToken.objects.exists()


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
