"""Sign-in at a real OpenID provider, as a person does it: there, back to the page that was wanted, and out again."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.fixtures import Settings

from accounts.domain.group_roles import parse
from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry, Identity, Membership, User
from accounts.selectors import token_of
from accounts.services import token_create, user_get_or_create
from accounts.services.invitations import invitation_create, invitation_url
from accounts.tasks import check_identities
from common.errors import NotAuthenticated
from tests import scenes
from tests.browser import openid
from tests.browser.axe import violations
from tests.servers.parts import MissingPartError, free_port, skip_or_fail

pytestmark = pytest.mark.browser
BUTTON = "Sign in with Example"


@pytest.fixture
def provider(server: str, settings: Settings) -> Iterator[openid.Provider]:
    """Start a provider for the server, and set the server up for it."""
    settings.PUBLIC_URL = server
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = openid.CLIENT_ID, openid.CLIENT_SECRET
    settings.OIDC_LABEL = BUTTON
    try:
        with openid.provider(back=f"{server}/signin/provider/back", signin=f"{server}/signin/") as started:
            settings.OIDC_ISSUER = started.issuer
            yield started
    except MissingPartError as missing:
        skip_or_fail(missing)


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """Return a page that nobody is signed in on."""
    return context.new_page()


def sign_in_there(page: Page, account: str, *, is_asked: bool = True) -> None:
    """Fill in the provider's own pages; it asks once whether the client may know who signs in."""
    page.get_by_placeholder("Enter any login").fill(account)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    if is_asked:
        page.get_by_role("button", name="Continue").click()


def test_who_signs_in_at_the_provider_lands_on_the_page_that_was_wanted_and_signs_out_of_both(
    page: Page, provider: openid.Provider, server: str, screenshots: Path
) -> None:
    page.goto("/tokens/?x=1")
    with page.expect_request(re.compile(re.escape(provider.issuer) + r"/auth\?")) as asked:
        page.get_by_role("link", name=BUTTON).press("Enter")
    query = parse_qs(urlsplit(asked.value.url).query)
    assert query["code_challenge_method"] == ["S256"]
    assert query["state"]
    assert query["nonce"]
    sign_in_there(page, "alice")
    page.wait_for_url(f"{server}/tokens/?x=1")
    expect(page.locator(".who-name")).to_have_text("alice")
    user = User.objects.get()
    assert not user.has_usable_password()
    assert [(row.team.name, row.role) for row in user.memberships.select_related("team")] == [("default", "viewer")]
    assert (user.identity.issuer, user.identity.subject) == (provider.issuer, "alice")
    assert list(AuditEntry.objects.order_by("pk").values_list("action", "target")) == [
        ("user.create", "users/alice"),
        ("user.identify", "users/alice"),
        ("session.signin", f"tokens/{ApiToken.objects.get().pk}"),
    ]

    page.get_by_label("Name").fill("cli")
    page.keyboard.press("Enter")
    expect(page.locator("#made-token")).to_contain_text("flt_")
    assert ApiToken.objects.get(name="cli").user == user
    assert violations(page) == []
    page.screenshot(path=screenshots / "tokens-at-provider.png")

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_test_id("signed-out-here")).to_be_visible()
    assert ApiToken.objects.get(is_session=True).revoked_at is not None
    page.get_by_role("link", name="Sign out there as well").click()
    page.get_by_role("button", name="Yes, sign me out").click()
    page.wait_for_url(re.compile(re.escape(f"{server}/signin/")))
    page.get_by_role("link", name=BUTTON).click()
    expect(page.get_by_placeholder("Enter any login")).to_be_visible()  # asked again: no session there either


def test_groups_of_the_provider_give_roles_and_take_them_at_the_next_sign_in(
    page: Page, provider: openid.Provider, settings: Settings
) -> None:
    settings.OIDC_SCOPES, settings.OIDC_GROUPS_CLAIM = ["openid", "profile", "groups"], "groups"
    settings.OIDC_GROUP_ROLES = parse(["ops=default:admin", "vision=vision:deployer"])
    settings.OIDC_DEFAULT_ROLE = "none"
    scenes.token(Scope.ADMIN, "root")
    provider.say_groups("alice", ["ops", "vision", "chess"])

    def roles() -> dict[str, str]:
        return dict(Membership.objects.filter(user__username="alice").values_list("team__name", "role"))

    page.goto("/signin/")
    page.get_by_role("link", name=BUTTON).click()
    sign_in_there(page, "alice")
    page.wait_for_url(re.compile(r"://[^/]+/$"))
    assert roles() == {"default": Role.ADMIN, "vision": Role.DEPLOYER}
    expect(page.get_by_role("link", name="Audit log")).to_be_visible()
    provider.say_groups("alice", ["vision"])
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name=BUTTON).click()  # the provider still knows who it is, and asks nothing
    page.wait_for_url(re.compile(r"://[^/]+/$"))
    assert roles() == {"vision": Role.DEPLOYER}


def test_an_invitation_links_who_is_here_to_the_account_that_opens_it(
    page: Page, provider: openid.Provider, server: str, screenshots: Path
) -> None:
    del provider  # started
    user_get_or_create(username="root", now=timezone.now())
    created = invitation_create(username="root", actor="test", now=timezone.now())
    page.goto(invitation_url(created))
    expect(page.get_by_role("heading", name="Invitation for root")).to_be_visible()
    expect(page.get_by_test_id("what-is-linked")).to_be_visible()
    assert violations(page) == []
    page.screenshot(path=screenshots / "invitation.png")
    page.get_by_role("link", name=BUTTON).click()
    sign_in_there(page, "alice")
    page.wait_for_url(f"{server}/")
    expect(page.locator(".who-name")).to_have_text("root")
    assert Identity.objects.get(subject="alice").user.username == "root"
    page.get_by_role("button", name="Sign out").click()
    page.goto(invitation_url(created))
    expect(page.get_by_role("alert")).to_contain_text("was used at")
    page.get_by_role("link", name=BUTTON).click()
    expect(page.locator(".who-name")).to_have_text("root")


def test_who_is_removed_at_the_provider_is_out_here_too(page: Page, provider: openid.Provider, server: str) -> None:
    page.goto("/tokens/")
    with page.expect_request(re.compile(re.escape(provider.issuer) + r"/auth\?")) as asked:
        page.get_by_role("link", name=BUTTON).click()
    assert "offline_access" in parse_qs(urlsplit(asked.value.url).query)["scope"][0].split()
    sign_in_there(page, "alice")
    page.wait_for_url(f"{server}/tokens/")
    made = token_create(
        user=User.objects.get(),
        name="cli",
        scope=Scope.READ,
        lifetime=timedelta(days=90),
        now=timezone.now(),
        actor="a",
    )

    def check() -> str:
        Identity.objects.update(checked_at=timezone.now() - timedelta(hours=5), tried_at=None)
        check_identities()
        return Identity.objects.get().sealed_refresh_token

    assert check() != check() != ""
    assert Identity.objects.get().ended_at is None
    assert Identity.objects.get().checked_at > timezone.now() - timedelta(hours=1)
    page.reload()
    expect(page.locator(".who-name")).to_have_text("alice")

    provider.remove("alice")
    assert check() == ""
    with pytest.raises(NotAuthenticated, match="no longer has the account of token 'cli'"):
        token_of(secret=made.secret, now=timezone.now())
    page.goto("/tokens/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()

    provider.say_groups("alice", [])
    page.get_by_role("link", name=BUTTON).click()
    if page.get_by_placeholder("Enter any login").is_visible():
        sign_in_there(page, "alice")
    expect(page.locator(".who-name")).to_have_text("alice")
    assert token_of(secret=made.secret, now=timezone.now()).name == "cli"


def test_a_provider_that_refuses_the_scope_of_refresh_tokens_is_asked_without_it(
    page: Page, provider: openid.Provider, server: str
) -> None:
    there = re.compile(re.escape(provider.issuer) + r"/auth\?")
    page.goto("/tokens/?x=1")
    with page.expect_request(there) as asked:
        page.get_by_role("link", name=BUTTON).click()
    expect(page.get_by_placeholder("Enter any login")).to_be_visible()
    state = parse_qs(urlsplit(asked.value.url).query)["state"][0]
    with page.expect_request(there) as again:
        page.goto(f"{server}/signin/provider/back?{urlencode({'error': 'invalid_scope', 'state': state})}")
    assert "offline_access" not in again.value.url
    sign_in_there(page, "alice")
    page.wait_for_url(f"{server}/tokens/?x=1")
    assert Identity.objects.get().sealed_refresh_token == ""


def test_two_tabs_each_land_where_they_began_and_keep_the_refresh_token(
    context: BrowserContext, provider: openid.Provider, server: str
) -> None:
    del provider  # started
    tabs = {"/models/": context.new_page(), "/tokens/": context.new_page()}
    for path, page in tabs.items():
        page.goto(path)
        page.get_by_role("link", name=BUTTON).click()
        expect(page.get_by_placeholder("Enter any login")).to_be_visible()
    for path, page in tabs.items():
        sign_in_there(page, "alice", is_asked=path == "/models/")
        page.wait_for_url(f"{server}{path}")
        assert Identity.objects.get().sealed_refresh_token


def test_what_goes_wrong_is_told_where_one_can_try_again(
    page: Page, provider: openid.Provider, settings: Settings, complaints: list[str]
) -> None:
    told = page.get_by_role("alert")
    page.goto("/signin/")
    page.get_by_role("link", name=BUTTON).click()
    page.get_by_role("link", name="[ Cancel ]").click()
    expect(told).to_contain_text("refused or given up")

    page.goto("/signin/provider/back?code=stolen&state=guessed")
    expect(told).to_have_text(
        "This sign-in did not begin in this browser, or took longer than an hour; begin it again."
    )

    for_now = {"error": "temporarily_unavailable", "error_description": "authentication_expired"}
    page.goto(f"/signin/provider/back?{urlencode(for_now)}")
    expect(told).to_contain_text(
        "did not finish the sign-in: temporarily_unavailable authentication_expired; begin it again."
    )

    page.goto("/signin/?next=/models/")
    page.get_by_role("link", name=BUTTON).click()
    user = User.objects.create(username="alice", is_active=False)
    sign_in_there(page, "alice")
    expect(told).to_contain_text("The name 'alice' is taken here by another user")
    assert not Identity.objects.exists()

    Identity.objects.create(user=user, issuer=provider.issuer, subject="alice")
    page.get_by_role("link", name=BUTTON).click()
    expect(told).to_have_text("User 'alice' is switched off here; ask an administrator.")

    User.objects.update(is_active=True)
    page.get_by_role("link", name=BUTTON).click()
    page.wait_for_url(re.compile("/models/$"))  # the wish was kept, and the provider knows who it is

    page.get_by_role("button", name="Sign out").click()
    Identity.objects.update(subject="an earlier alice")
    page.get_by_role("link", name=BUTTON).click()
    expect(told).to_contain_text("The name 'alice' is taken here by another user")

    settings.OIDC_ISSUER = f"http://127.0.0.1:{free_port()}"
    page.goto("/signin/")
    page.get_by_role("link", name=BUTTON).click()
    expect(told).to_contain_text("does not answer; try again later, or ask an administrator.")
    # Refusals, and what the provider's own pages would load from elsewhere; nothing that our policy refused.
    assert [text for text in complaints if not text.startswith("Failed to load resource")] == []


@pytest.mark.parametrize("tokens", [True, False], ids=["with tokens", "without"])
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_and_can_be_used_by_everybody(
    page: Page, settings: Settings, screenshots: Path, width: int, colours: str, tokens: bool, server: str
) -> None:
    settings.OIDC_ISSUER, settings.OIDC_LABEL, settings.TOKEN_SIGNIN = "http://127.0.0.1:1", BUTTON, tokens
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=colours)  # type: ignore[arg-type]
    for name, path in {"empty": "/signin/", "left": "/signin/?left=provider", "error": "/signin/provider/"}.items():
        page.goto(path)
        expect(page.get_by_label("API token")).to_have_count(int(tokens))
        page.screenshot(path=screenshots / f"signin-{name}-{width}-{colours}{'' if tokens else '-provider'}.png")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
