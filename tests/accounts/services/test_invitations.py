"""Invitations: a user who is here is linked to an account of the provider, once, as an administrator decided."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from accounts.domain.person import Person
from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry, Identity, Invitation, User
from accounts.selectors import digest_of
from accounts.services import user_get_or_create
from accounts.services.invitations import invitation_create, invitation_get, invitation_use, invitations_forget
from accounts.services.oidc_users import user_switch
from common.errors import Conflict, NotAuthenticated, NotFound
from tests import scenes
from tests.accounts._support.pages import Browser, page

pytestmark = pytest.mark.django_db
ISSUER = "https://sso.example"


@pytest.fixture(autouse=True)
def provider(settings: Settings) -> None:
    settings.OIDC_ISSUER = ISSUER
    settings.PUBLIC_URL = "https://fairlead.example"


def person(subject: str = "1", issuer: str = ISSUER) -> Person:
    return Person(issuer, subject, "a.smith", None)


def invited(name: str = "alice") -> str:
    """Return the digest of an invitation of a local user, made if missing."""
    user_get_or_create(username=name, now=timezone.now())
    return digest_of(invitation_create(username=name, actor="root", now=timezone.now()).secret)


def test_an_invitation_links_the_user_who_keeps_name_and_roles() -> None:
    digest = invited()
    user = invitation_use(digest=digest, person=person(), now=timezone.now())
    assert (user.username, user.identity.issuer, user.identity.subject) == ("alice", ISSUER, "1")
    assert user.memberships.get().role == Role.ADMIN
    logged = AuditEntry.objects.filter(target="users/alice").order_by("pk")
    assert list(logged.values_list("action", "actor")) == [
        ("user.create", "fairlead"),
        ("user.invite", "root"),
        ("user.identify", "fairlead"),
    ]


def test_its_secret_is_in_no_table() -> None:
    user_get_or_create(username="alice", now=timezone.now())
    secret = invitation_create(username="alice", actor="root", now=timezone.now()).secret
    assert Invitation.objects.get().digest == digest_of(secret)
    assert secret not in str([*Invitation.objects.values(), *AuditEntry.objects.values()])


def test_an_account_of_a_former_provider_is_replaced() -> None:
    user = user_get_or_create(username="alice", now=timezone.now())
    Identity.objects.create(user=user, issuer="https://old.example", subject="x")
    invitation_use(digest=invited(), person=person(), now=timezone.now())
    assert Identity.objects.get().issuer == ISSUER


def test_it_is_refused_where_it_cannot_work(settings: Settings) -> None:
    now = timezone.now()
    with pytest.raises(NotFound, match="no user 'bob'"):
        invitation_create(username="bob", actor="root", now=now)
    user = user_get_or_create(username="alice", now=now)
    Identity.objects.create(user=user, issuer=ISSUER, subject="1")
    with pytest.raises(Conflict, match=r"signs in at https://sso\.example already"):
        invitation_create(username="alice", actor="root", now=now)
    user_switch(username="alice", is_active=False, actor="root", now=now)
    with pytest.raises(Conflict, match="switched off"):
        invitation_create(username="alice", actor="root", now=now)
    settings.OIDC_ISSUER = ""
    with pytest.raises(Conflict, match="no provider is set up"):
        invitation_create(username="alice", actor="root", now=now)


def test_old_ones_are_forgotten_a_month_after_their_end() -> None:
    invited()
    now = timezone.now()
    assert invitations_forget(now=now + timedelta(days=32)) == 0
    assert invitations_forget(now=now + timedelta(days=34)) == 1


def test_the_api_answers_with_the_link_this_once() -> None:
    user_get_or_create(username="alice", now=timezone.now())
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {scenes.token(Scope.ADMIN, 'root')}", HTTP_IDEMPOTENCY_KEY="k")
    answer = client.post("/api/v1/users/alice/invitation")
    assert answer.status_code == 201, answer.content
    url = answer.json()["url"]
    assert url.startswith("https://fairlead.example/signin/invitation/")
    assert invitation_get(digest=digest_of(url.rpartition("/")[2]), now=timezone.now()).user.username == "alice"
    assert client.post("/api/v1/users/alice/invitation").status_code == 409
    assert Invitation.objects.count() == 1


def test_the_page_of_the_user_shows_the_link_this_once(browser: Browser) -> None:
    administrator = browser()
    user_get_or_create(username="alice", now=timezone.now())
    assert "Create invitation" in page(administrator, "/users/alice/")
    whole = administrator.post("/users/alice/invite").content.decode()
    assert 'id="invitation-link">https://fairlead.example/signin/invitation/' in whole
    part = administrator.post("/users/alice/invite", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert "invitation-link" in part
    assert "signin/invitation/" not in page(administrator, "/users/alice/")
    Identity.objects.create(user=User.objects.get(username="alice"), issuer=ISSUER, subject="1")
    assert "Create invitation" not in page(administrator, "/users/alice/")


def test_the_link_leads_to_the_provider_and_changes_nothing_by_itself(client: Client) -> None:
    user_get_or_create(username="alice", now=timezone.now())
    secret = invitation_create(username="alice", actor="root", now=timezone.now()).secret
    for _ in range(2):
        shown = page(client, f"/signin/invitation/{secret}")
        assert "Invitation for alice" in shown
        assert "/signin/provider/?invitation=" in shown
    assert Invitation.objects.get().used_at is None
    refused = client.get("/signin/invitation/guessed")
    assert refused.status_code == 401
    assert "This invitation is not known here" in refused.content.decode()


def test_without_a_provider_the_link_leads_nowhere(client: Client, settings: Settings) -> None:
    settings.OIDC_ISSUER = ""
    assert client.get("/signin/invitation/x").status_code == 404


@pytest.mark.parametrize(
    ("later", "sentence"),
    [(timedelta(hours=71), ""), (timedelta(hours=72), "expired at")],
)
def test_it_lives_for_72_hours(later: timedelta, sentence: str) -> None:
    digest, now = invited(), timezone.now()
    if sentence:
        with pytest.raises(NotAuthenticated, match=sentence):
            invitation_use(digest=digest, person=person(), now=now + later)
    else:
        assert invitation_use(digest=digest, person=person(), now=now + later).username == "alice"
