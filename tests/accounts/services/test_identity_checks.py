"""Whether users still have their accounts at the provider, and what ends where they do not."""

from collections.abc import Callable
from datetime import datetime, timedelta
from importlib import import_module

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django import Settings

from accounts.domain.person import Person
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry, Identity
from accounts.selectors import token_of, token_of_session, users_who_may
from accounts.services import token_create
from accounts.services.identities import REFRESH_TOKEN, identity_end
from accounts.services.identity_checks import identities_check
from accounts.services.oidc_users import person_signin
from accounts.tasks import check_identities
from common.encryption import unseal
from common.errors import NotAuthenticated, Unavailable
from integrations.oidc import AccountGone
from tests.servers.parts import free_port

pytestmark = pytest.mark.django_db
ISSUER = "https://sso.example"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(autouse=True)
def provider(settings: Settings) -> None:
    settings.OIDC_ISSUER = ISSUER


def sign_in(name: str = "alice", refresh_token: str = "first") -> HttpRequest:
    request = RequestFactory().get("/")
    request.session = import_module(django_settings.SESSION_ENGINE).SessionStore()
    request.user = AnonymousUser()
    person = Person(ISSUER, name, name, None)
    person_signin(request=request, person=person, now=timezone.now(), refresh_token=refresh_token)
    return request


def cli_token(name: str = "alice") -> str:
    user = Identity.objects.get(subject=name).user
    made = token_create(user=user, name="cli", scope=Scope.READ, lifetime=90 * DAY, now=timezone.now(), actor="test")
    return made.secret


def gone(_: str) -> str:
    raise AccountGone("sso.example no longer confirms the account: invalid_grant")


def silent(_: str) -> str:
    raise Unavailable("sso.example does not answer")


def misconfigured(_: str) -> str:
    raise NotAuthenticated("sso.example refused the sign-in: invalid_client")


def check(renew: Callable[[str], str], *, later: timedelta = 5 * HOUR) -> int:
    def clock() -> datetime:
        return timezone.now() + later

    return identities_check(issuer=ISSUER, renew=renew, clock=clock)


def test_the_refresh_token_is_kept_sealed_and_the_next_one_after_it() -> None:
    sign_in()
    sealed = Identity.objects.get().sealed_refresh_token
    assert "first" not in sealed
    assert unseal(sealed, purpose=REFRESH_TOKEN) == "first"
    seen: list[str] = []

    def renew(token: str) -> str:
        seen.append(token)
        return f"{token}+"

    assert check(renew, later=3 * HOUR) == 0, "not due yet"
    assert check(renew) == 0
    assert check(renew, later=10 * HOUR) == 0
    assert seen == ["first", "first+"]
    checked = Identity.objects.get().checked_at
    assert checked is not None
    assert checked > timezone.now() + 9 * HOUR


def test_who_is_removed_there_loses_session_and_tokens_until_the_next_sign_in() -> None:
    request = sign_in()
    secret, now = cli_token(), timezone.now()
    assert users_who_may(Scope.READ, kind=Owned.MODEL, names=["m"])["m"] != set()
    assert check(gone) == 1
    assert token_of_session(request=request, now=now) is None
    with pytest.raises(
        NotAuthenticated, match=r"no longer has the account of token 'cli'; user 'alice' has to sign in"
    ):
        token_of(secret=secret, now=now)
    assert users_who_may(Scope.READ, kind=Owned.MODEL, names=["m"])["m"] == set()
    entry = AuditEntry.objects.get(action="user.expire")
    assert (entry.target, entry.detail["reason"]) == (
        "users/alice",
        "sso.example no longer confirms the account: invalid_grant",
    )
    assert check(gone, later=DAY) == 0, "it is asked about no more"
    sign_in(refresh_token="second")
    assert token_of(secret=secret, now=timezone.now()).name == "cli"
    assert AuditEntry.objects.filter(action="user.confirm").count() == 1


def test_a_token_of_an_earlier_release_ends_too() -> None:
    sign_in()
    secret = cli_token()
    ApiToken.objects.update(needs_proof=False)
    check(gone)
    with pytest.raises(NotAuthenticated, match="no longer has the account"):
        token_of(secret=secret, now=timezone.now())


@pytest.mark.parametrize("renew", [silent, misconfigured])
def test_an_outage_locks_nobody_out_unless_that_is_set(renew: Callable[[str], str], settings: Settings) -> None:
    sign_in()
    secret = cli_token()
    assert check(renew, later=30 * DAY) == 0
    assert token_of(secret=secret, now=timezone.now() + 30 * DAY).name == "cli"
    settings.OIDC_LONGEST_OUTAGE = timedelta(0)
    with pytest.raises(NotAuthenticated, match="last confirmed the account"):
        token_of(secret=secret, now=timezone.now() + DAY)


def test_an_outage_is_met_once_in_a_round() -> None:
    for name in ("alice", "bob", "carol"):
        sign_in(name)
    seen: list[str] = []

    def renew(token: str) -> str:
        seen.append(token)
        return silent(token)

    check(renew)
    assert len(seen) == 1


def test_without_a_refresh_token_tokens_work_a_day_after_the_last_sign_in() -> None:
    request = sign_in(refresh_token="")
    secret, now = cli_token(), timezone.now()
    assert token_of(secret=secret, now=now + 23 * HOUR).name == "cli"
    with pytest.raises(NotAuthenticated, match=r"last confirmed the account of token 'cli' at .* more than a day ago"):
        token_of(secret=secret, now=now + DAY)
    assert token_of_session(request=request, now=now + DAY) is None
    sign_in(refresh_token="")
    assert token_of(secret=secret, now=now + 23 * HOUR).name == "cli"


def test_tokens_and_accounts_of_an_earlier_release_go_on() -> None:
    sign_in(refresh_token="")
    secret = cli_token()
    ApiToken.objects.update(needs_proof=False)
    assert token_of(secret=secret, now=timezone.now() + 30 * DAY).name == "cli"
    ApiToken.objects.update(needs_proof=True)
    Identity.objects.update(checked_at=None)
    assert token_of(secret=secret, now=timezone.now() + 30 * DAY).name == "cli"


def test_a_sign_in_during_the_check_is_not_undone() -> None:
    sign_in()

    def renew(token: str) -> str:
        sign_in(refresh_token="second")
        return gone(token)

    assert check(renew) == 0
    assert Identity.objects.get().ended_at is None
    stale = Identity(pk=Identity.objects.get().pk, sealed_refresh_token="another")
    assert not identity_end(identity=stale, reason="late", now=timezone.now())


def test_a_session_of_a_removed_person_opens_no_page(client: Client) -> None:
    request = sign_in()
    request.session.save()
    client.cookies[django_settings.SESSION_COOKIE_NAME] = str(request.session.session_key)
    assert client.get("/tokens/").status_code == 200
    check(gone)
    assert client.get("/tokens/").status_code == 302


def test_the_task_waits_for_a_provider_that_does_not_answer(settings: Settings) -> None:
    settings.OIDC_ISSUER = f"http://127.0.0.1:{free_port()}"
    sign_in()
    Identity.objects.update(issuer=settings.OIDC_ISSUER, checked_at=None, tried_at=None)
    check_identities()
    assert Identity.objects.get().ended_at is None
    settings.OIDC_ISSUER = ""
    check_identities()
