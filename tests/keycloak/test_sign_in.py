"""People who sign in at a real Keycloak: who they are here, what they may, and what ends when they leave there."""

import re
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from pytest_django.fixtures import Settings

from accounts.domain.group_roles import parse
from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry, Identity, Membership, User
from accounts.selectors import token_of
from accounts.services import token_create
from accounts.services.invitations import invitation_create, invitation_url
from accounts.tasks import check_identities
from common.errors import NotAuthenticated
from tests import scenes
from tests.browser.serving import DEADLINE_S, Running
from tests.e2e.harness import until
from tests.keycloak._support.realm import CLIENT_ID, CLIENT_SECRET, PASSWORD, Realm, make_realm
from tests.keycloak._support.server import Keycloak

pytestmark = pytest.mark.keycloak
BUTTON = "Sign in with Keycloak"


@pytest.fixture
def fairlead(transactional_db: None) -> Iterator[str]:
    """Serve the control plane; return its address."""
    running = Running()
    running.start()
    yield running.address
    running.stop()


@pytest.fixture
def realm(server: Keycloak, fairlead: str, settings: Settings) -> Iterator[Realm]:
    """Make a realm, and set the control plane up for it."""
    realm = make_realm(server, "ml", fairlead=fairlead)
    settings.PUBLIC_URL, settings.OIDC_ISSUER = fairlead, realm.issuer
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = CLIENT_ID, CLIENT_SECRET
    settings.OIDC_LABEL = BUTTON
    yield realm
    server.admin("DELETE", f"realms/{realm.name}")


@pytest.fixture
def context(browser: Browser, fairlead: str) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=fairlead)
    context.set_default_timeout(DEADLINE_S * 1000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """Return a page that nobody is signed in on."""
    return context.new_page()


def sign_in_there(page: Page, username: str) -> None:
    """Fill in Keycloak's own page."""
    page.locator("#username").fill(username)
    page.locator("#password").fill(PASSWORD)
    page.locator("#kc-login").click()


def sign_in(page: Page, username: str) -> None:
    """Sign in from our page on, whatever comes of it."""
    page.goto("/signin/")
    page.get_by_role("link", name=BUTTON).click()
    sign_in_there(page, username)
    page.wait_for_url(re.compile(r"/signin/provider/back|://[^/]+/$"))


def signed_in(page: Page, username: str) -> None:
    """Assert that the page's person is this user."""
    expect(page.locator(".who-name")).to_have_text(username)


def sign_out(page: Page) -> None:
    """Sign out here and at Keycloak, which asks before it ends a session that other clients share."""
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign out there as well").click()
    page.wait_for_url(re.compile(r"/logout\?|/signin/\?state="))
    if "/logout?" in page.url:
        page.locator("#kc-logout").click()
        page.wait_for_url(re.compile(r"/signin/\?state="))


def refused(page: Page) -> Locator:
    """Return the sentence of a sign-in that was refused."""
    expect(page.get_by_role("alert")).to_be_visible()
    assert not ApiToken.objects.filter(is_session=True, revoked_at=None).exists()
    return page.get_by_role("alert")


def check() -> Identity:
    """Let the worker ask Keycloak about the only person, as it does every four hours."""
    Identity.objects.update(checked_at=timezone.now() - timedelta(hours=5), tried_at=None)
    check_identities()
    return Identity.objects.get()


def cli_token(username: str) -> str:
    """Return a new API token of a person."""
    user, lifetime = User.objects.get(username=username), timedelta(days=90)
    return token_create(
        user=user, name="cli", scope=Scope.READ, lifetime=lifetime, now=timezone.now(), actor=username
    ).secret


def works(secret: str, *, after: timedelta = timedelta(0)) -> bool:
    """Return whether the API token does, then."""
    try:
        return bool(token_of(secret=secret, now=timezone.now() + after))
    except NotAuthenticated:
        return False


def roles(username: str) -> dict[str, str]:
    """Return a person's role by team."""
    return dict(Membership.objects.filter(user__username=username).values_list("team__name", "role"))


def test_a_person_signs_in_with_pkce_and_out_of_both(page: Page, realm: Realm, fairlead: str) -> None:
    subject = realm.add_user("alice")
    page.goto("/tokens/?x=1")
    with page.expect_request(re.compile(re.escape(realm.issuer) + r".*/auth\?")) as asked:
        page.get_by_role("link", name=BUTTON).click()
    query = parse_qs(urlsplit(asked.value.url).query)
    assert query["code_challenge_method"] == ["S256"]
    assert "offline_access" in query["scope"][0].split()
    sign_in_there(page, "alice")
    page.wait_for_url(f"{fairlead}/tokens/?x=1")
    signed_in(page, "alice")
    identity = Identity.objects.get()
    assert (identity.issuer, identity.subject) == (realm.issuer, subject)
    assert identity.sealed_refresh_token
    assert roles("alice") == {"default": Role.VIEWER}
    assert realm.admin("GET", f"users/{subject}/sessions").json() == [], "the offline session replaces it"

    secret = cli_token("alice")
    sign_out(page)
    assert ApiToken.objects.get(is_session=True).revoked_at is not None
    page.get_by_role("link", name=BUTTON).click()
    expect(page.locator("#kc-login")).to_be_visible()
    assert check().ended_at is None, "who signs out of a browser keeps the tokens of the command line"
    assert works(secret)


def test_who_has_a_session_there_is_not_asked_again_and_ends_it_by_signing_out(page: Page, realm: Realm) -> None:
    realm.add_user("alice")
    page.goto(f"{realm.issuer}/account/")
    sign_in_there(page, "alice")
    page.wait_for_url(re.compile(r"/account/"))
    page.goto("/signin/")
    page.get_by_role("link", name=BUTTON).click()
    signed_in(page, "alice")
    secret = cli_token("alice")
    sign_out(page)
    page.get_by_role("link", name=BUTTON).click()
    expect(page.locator("#kc-login")).to_be_visible()
    assert check().ended_at is None
    assert works(secret)


def test_groups_give_roles_and_take_them_at_the_next_sign_in(page: Page, realm: Realm, settings: Settings) -> None:
    settings.OIDC_GROUPS_CLAIM, settings.OIDC_DEFAULT_ROLE = "groups", "none"
    settings.OIDC_GROUP_ROLES = parse(["ml-admins=default:admin", "vision=vision:deployer"])
    scenes.token(Scope.ADMIN, "root")
    subject = realm.add_user("alice", groups=("ml-admins", "vision"))
    sign_in(page, "alice")
    signed_in(page, "alice")
    assert roles("alice") == {"default": Role.ADMIN, "vision": Role.DEPLOYER}
    sign_out(page)
    (admins,) = realm.admin("GET", "groups?search=ml-admins").json()
    realm.admin("DELETE", f"users/{subject}/groups/{admins['id']}")
    sign_in(page, "alice")
    signed_in(page, "alice")
    assert roles("alice") == {"vision": Role.DEPLOYER}


def test_roles_of_the_realm_give_roles_where_a_mapper_writes_them(page: Page, realm: Realm, settings: Settings) -> None:
    settings.OIDC_GROUPS_CLAIM, settings.OIDC_DEFAULT_ROLE = "roles", "none"
    settings.OIDC_GROUP_ROLES = parse(["approver=vision:admin"])
    realm.add_mapper("oidc-usermodel-realm-role-mapper", "roles", **{"multivalued": "true"})
    realm.admin("POST", "roles", {"name": "approver"})
    subject = realm.add_user("alice")
    realm.admin("POST", f"users/{subject}/role-mappings/realm", [realm.admin("GET", "roles/approver").json()])
    sign_in(page, "alice")
    signed_in(page, "alice")
    assert roles("alice") == {"vision": Role.ADMIN}


def test_a_name_takes_no_local_administrator_over_and_an_invitation_links_the_account(page: Page, realm: Realm) -> None:
    secret = scenes.token(Scope.ADMIN, "root")
    subject = realm.add_user("root")
    sign_in(page, "root")
    expect(refused(page)).to_contain_text("The name 'root' is taken here by another user")
    assert not Identity.objects.exists()

    created = invitation_create(username="root", actor="test", now=timezone.now())
    page.goto(invitation_url(created))
    page.get_by_role("link", name=BUTTON).click()
    sign_in_there(page, "root")
    signed_in(page, "root")
    identity = Identity.objects.get()
    assert (identity.issuer, identity.subject, identity.user.username) == (realm.issuer, subject, "root")
    assert works(secret)

    sign_out(page)
    realm.add_user("mallory")
    page.goto(invitation_url(created))
    expect(page.get_by_role("alert")).to_contain_text("was used at")
    sign_in(page, "mallory")
    signed_in(page, "mallory")
    assert Identity.objects.get(user__username="root").subject == subject


def test_an_address_names_a_new_person_only_where_keycloak_verified_it(
    page: Page, realm: Realm, settings: Settings
) -> None:
    settings.OIDC_USERNAME_CLAIM = "email"
    subject = realm.add_user("alice", emailVerified=False)
    sign_in(page, "alice")
    expect(refused(page)).to_contain_text("does not say that the address alice@example.com is verified")
    realm.change_user(subject, emailVerified=True)
    realm.remove_mapper_of_scope("email", "email verified")
    sign_in(page, "alice")
    expect(refused(page)).to_contain_text("does not say that the address alice@example.com is verified")
    assert not User.objects.exists()

    realm.add_mapper("oidc-usermodel-property-mapper", "email_verified", id_token=False, **_VERIFIED)
    sign_in(page, "alice")
    signed_in(page, "alice@example.com")  # from userinfo, which alone has the claim now


_VERIFIED = {"user.attribute": "emailVerified", "jsonType.label": "boolean"}


def test_a_person_with_another_name_there_stays_the_same_person(page: Page, realm: Realm) -> None:
    subject = realm.add_user("alice")
    sign_in(page, "alice")
    signed_in(page, "alice")
    sign_out(page)
    realm.change_user(subject, username="alice.smith")
    sign_in(page, "alice.smith")
    signed_in(page, "alice")
    assert User.objects.count() == 1
    sign_out(page)

    realm.add_user("alice", email="another@example.com")  # somebody else, with the former name
    sign_in(page, "alice")
    expect(refused(page)).to_contain_text("The name 'alice' is taken here by another user")


def test_a_person_who_is_disabled_there_is_out_here_until_the_next_sign_in(page: Page, realm: Realm) -> None:
    subject = realm.add_user("alice")
    sign_in(page, "alice")
    signed_in(page, "alice")
    secret = cli_token("alice")
    page.goto("about:blank")  # our page would leave for the sign-in by itself
    assert check().ended_at is None
    realm.change_user(subject, enabled=False)
    assert check().ended_at is not None
    assert not works(secret)
    page.goto("/tokens/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_role("link", name=BUTTON).click()
    sign_in_there(page, "alice")
    expect(page.locator("#input-error, .kc-feedback-text, [class*=error]").first).to_be_visible()

    realm.change_user(subject, enabled=True)
    sign_in(page, "alice")
    signed_in(page, "alice")
    assert works(secret)


def test_a_person_who_is_deleted_there_is_out_and_another_one_of_the_name_does_not_follow(
    page: Page, realm: Realm
) -> None:
    subject = realm.add_user("alice")
    sign_in(page, "alice")
    signed_in(page, "alice")
    secret = cli_token("alice")
    realm.admin("DELETE", f"users/{subject}")
    assert check().ended_at is not None
    assert AuditEntry.objects.filter(action="user.expire", target="users/alice").exists()
    realm.add_user("alice")
    sign_in(page, "alice")
    expect(refused(page)).to_contain_text("The name 'alice' is taken here by another user")
    assert not works(secret)


def test_an_administrator_there_who_signs_a_person_out_ends_the_tokens_here(page: Page, realm: Realm) -> None:
    subject = realm.add_user("alice")
    sign_in(page, "alice")
    signed_in(page, "alice")
    secret = cli_token("alice")

    def ended() -> bool:
        realm.admin("POST", f"users/{subject}/logout")  # which ends what was renewed in an earlier second
        return check().ended_at is not None

    until(ended, what="the end of the tokens")
    assert not works(secret)


@pytest.mark.parametrize("refusal", ["of the person", "of the client"])
def test_where_keycloak_gives_no_offline_session_tokens_end_a_day_after_the_sign_in(
    page: Page, realm: Realm, refusal: str
) -> None:
    subject = realm.add_user("alice")
    if refusal == "of the person":
        realm.take_role(subject, f"default-roles-{realm.name}")
    else:
        client, scope = realm.client_key(CLIENT_ID), realm.scope_id("offline_access")
        realm.admin("DELETE", f"clients/{client}/optional-client-scopes/{scope}")
    page.goto("/signin/")
    page.get_by_role("link", name=BUTTON).click()
    sign_in_there(page, "alice")
    signed_in(page, "alice")
    assert Identity.objects.get().sealed_refresh_token == ""
    assert len(realm.admin("GET", f"users/{subject}/sessions").json()) == 1, "other clients ask for no password"
    secret = cli_token("alice")
    assert works(secret, after=timedelta(hours=23))
    assert not works(secret, after=timedelta(hours=25))


def test_refresh_tokens_that_work_once_are_followed(page: Page, realm: Realm) -> None:
    realm.server.admin("PUT", f"realms/{realm.name}", {"revokeRefreshToken": True, "refreshTokenMaxReuse": 0})
    realm.add_user("alice")
    sign_in(page, "alice")
    signed_in(page, "alice")
    sealed = [Identity.objects.get().sealed_refresh_token, *(check().sealed_refresh_token for _ in range(3))]
    assert len(set(sealed)) == 4
    assert Identity.objects.get().ended_at is None


def test_people_sign_in_and_are_confirmed_after_keycloak_rotated_its_key(page: Page, realm: Realm) -> None:
    realm.add_user("alice")
    sign_in(page, "alice")
    signed_in(page, "alice")
    realm.add_key(priority=200)
    assert check().ended_at is None
    sign_out(page)
    sign_in(page, "alice")
    signed_in(page, "alice")


def test_a_secret_that_is_wrong_ends_no_ones_work(page: Page, realm: Realm) -> None:
    realm.add_user("alice")
    sign_in(page, "alice")
    signed_in(page, "alice")
    secret = cli_token("alice")
    realm.change_client(CLIENT_ID, secret="another")
    assert check().ended_at is None
    assert works(secret)
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, "alice")
    expect(refused(page)).to_contain_text("refused the sign-in: unauthorized_client")


def test_two_tabs_sign_in_one_after_the_other(context: BrowserContext, realm: Realm, fairlead: str) -> None:
    realm.add_user("alice")
    tabs = {"/models/": context.new_page(), "/tokens/": context.new_page()}
    for path, page in tabs.items():
        page.goto(path)
        page.get_by_role("link", name=BUTTON).click()
        expect(page.locator("#kc-login")).to_be_visible()
    for path, page in tabs.items():
        sign_in_there(page, "alice")
        page.wait_for_url(f"{fairlead}{path}")
        signed_in(page, "alice")
        assert Identity.objects.get().sealed_refresh_token
