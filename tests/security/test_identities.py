"""Accounts of an OpenID provider that would like to be somebody else here: by a name, an address or a `sub`."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.domain.person import Person, person_of
from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, Identity, Membership, User
from accounts.selectors import digest_of
from accounts.services import teams, user_get_or_create
from accounts.services.invitations import invitation_create
from accounts.services.oidc_users import person_signin
from common.errors import InvalidInput, NotAuthenticated
from tests import scenes

pytestmark = pytest.mark.django_db
ISSUER = "https://sso.example"


def browser_request() -> HttpRequest:
    request = RequestFactory().get("/")
    request.session = import_module(django_settings.SESSION_ENGINE).SessionStore()
    request.user = AnonymousUser()
    return request


def sign_in(person: Person) -> ApiToken:
    return person_signin(request=browser_request(), person=person, now=timezone.now())


@pytest.mark.parametrize("name", ["root", "ROOT", "Root"])
def test_a_preferred_username_takes_no_local_user_over(name: str) -> None:
    scenes.token(Scope.ADMIN, "root")
    with pytest.raises(NotAuthenticated, match="is taken here by another user"):
        sign_in(Person(ISSUER, "attacker", name, None))
    assert User.objects.get().username == "root"
    assert not Identity.objects.exists()
    assert not ApiToken.objects.filter(is_session=True).exists()


def test_a_preferred_username_takes_no_user_of_another_account_over() -> None:
    sign_in(Person(ISSUER, "1", "alice", None))
    with pytest.raises(NotAuthenticated, match="is taken here by another user"):
        sign_in(Person(ISSUER, "2", "alice", None))
    assert Identity.objects.get().subject == "1"


def test_a_role_that_waits_for_a_name_is_not_taken_by_who_calls_himself_so() -> None:
    now = timezone.now()
    scenes.token(Scope.ADMIN, "root")
    teams.team_create(name="vision", actor="test", now=now)
    teams.member_set(team="vision", username="alice", role=Role.DEPLOYER, actor="test", now=now)
    with pytest.raises(NotAuthenticated, match="is taken here by another user"):
        sign_in(Person(ISSUER, "attacker", "alice", None))
    assert Membership.objects.get(team__name="vision").user.tokens.count() == 0


@pytest.mark.parametrize("verified", [{}, {"email_verified": False}, {"email_verified": "true"}])
def test_an_address_that_is_not_verified_lets_nobody_in(verified: dict[str, object]) -> None:
    claims = {"sub": "attacker", "email": "ceo@example.com", **verified}
    with pytest.raises(NotAuthenticated, match=r"does not say that the address ceo@example\.com is verified"):
        sign_in(person_of(claims, issuer=ISSUER, username_claim="email", groups_claim=""))
    assert not User.objects.exists()


def test_a_verified_address_takes_no_existing_user_over() -> None:
    scenes.token(Scope.ADMIN, "ceo@example.com")
    claims = {"sub": "attacker", "email": "ceo@example.com", "email_verified": True}
    with pytest.raises(NotAuthenticated, match="is taken here by another user"):
        sign_in(person_of(claims, issuer=ISSUER, username_claim="email", groups_claim=""))
    assert not Identity.objects.exists()


def test_the_same_sub_of_another_issuer_is_another_person() -> None:
    alice = sign_in(Person(ISSUER, "1", "alice", None)).user
    with pytest.raises(NotAuthenticated, match="is taken here by another user"):
        sign_in(Person("https://evil.example", "1", "alice", None))
    mallory = sign_in(Person("https://evil.example", "1", "mallory", None)).user
    assert mallory != alice
    assert alice.identity.issuer == ISSUER


@pytest.mark.parametrize(
    "name", ["flt_x", "FLT_x", " flt_x", "alice (token ci)", "alice (Token ci)", "(token", "bob (token x) "]
)
def test_a_user_name_reads_like_no_token_and_no_caller_with_one(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"user (begins with flt_|is .*which the audit log writes)"):
        user_get_or_create(username=name, now=timezone.now())
    assert not User.objects.exists()


def test_a_user_who_has_such_a_name_already_keeps_it() -> None:
    user = User.objects.create(username="flt_old")
    assert user_get_or_create(username="flt_old", now=timezone.now()) == user


@pytest.fixture
def invited(settings: Settings) -> str:
    """Return the secret of an invitation of the user alice."""
    settings.OIDC_ISSUER = ISSUER
    user_get_or_create(username="alice", now=timezone.now())
    return invitation_create(username="alice", actor="test", now=timezone.now()).secret


def accept(secret: str, person: Person, *, later: timedelta = timedelta(0)) -> ApiToken:
    now = timezone.now() + later
    return person_signin(request=browser_request(), person=person, now=now, invitation=digest_of(secret))


MALLORY = Person(ISSUER, "mallory", "mallory", None)


def test_an_invitation_that_was_used_links_nobody_else(invited: str) -> None:
    accept(invited, Person(ISSUER, "1", "a.smith", None))
    with pytest.raises(NotAuthenticated, match=r"was used at .* and works once"):
        accept(invited, MALLORY)
    assert Identity.objects.get().subject == "1"


def test_an_invitation_that_expired_or_was_replaced_links_nobody(invited: str) -> None:
    with pytest.raises(NotAuthenticated, match="expired at"):
        accept(invited, MALLORY, later=timedelta(hours=72))
    newer = invitation_create(username="alice", actor="test", now=timezone.now()).secret
    with pytest.raises(NotAuthenticated, match="or a newer one replaced it"):
        accept(invited, MALLORY, later=timedelta(seconds=1))
    assert not Identity.objects.exists()
    assert accept(newer, Person(ISSUER, "1", "a.smith", None)).user.username == "alice"


def test_a_guessed_invitation_links_nobody() -> None:
    with pytest.raises(NotAuthenticated, match="is not known here"):
        accept("guessed", MALLORY)
    assert not User.objects.exists()


def test_an_account_that_belongs_to_someone_takes_no_second_user_and_the_invitation_stays(invited: str) -> None:
    sign_in(MALLORY)
    with pytest.raises(NotAuthenticated, match="belongs to user 'mallory' already"):
        accept(invited, MALLORY)
    assert accept(invited, Person(ISSUER, "1", "a.smith", None)).user.username == "alice"


def test_a_user_who_was_linked_meanwhile_is_not_taken_over(invited: str) -> None:
    Identity.objects.create(user=User.objects.get(username="alice"), issuer=ISSUER, subject="1")
    with pytest.raises(NotAuthenticated, match="belongs to another account of the provider already"):
        accept(invited, MALLORY)


def test_an_invitation_lets_no_user_in_who_is_switched_off(invited: str) -> None:
    User.objects.filter(username="alice").update(is_active=False)
    with pytest.raises(NotAuthenticated, match="switched off"):
        accept(invited, MALLORY)
    assert not Identity.objects.exists()


@pytest.mark.parametrize("number", ["", "guessed", "é"])
def test_another_site_leads_nobody_through_an_invitation(invited: str, number: str, client: Client) -> None:
    """Else its visitors, whom the provider knows, would work here as the user that the attacker was invited to."""
    assert client.get(f"/signin/invitation/{invited}").status_code == 200  # as an image of that site does
    answer = client.get("/signin/provider/", {"invitation": number})
    assert answer.status_code == 401
    assert "did not begin here" in answer.content.decode()
    assert "invitation_accepted" not in client.session
