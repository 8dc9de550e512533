"""Who may what, given and taken on pages, and whom the running platform then lets in; what was done is in its log."""

import csv
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import openid
from tests.browser.whole.desk import WAIT_MS, Desk, ask, see
from tests.browser.whole.driven import drives
from tests.e2e.harness import Platform
from tests.servers.parts import MissingPartError, skip_or_fail

pytestmark = [pytest.mark.browser, pytest.mark.e2e]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One running platform for the module, at which one can also sign in at an OpenID provider."""
    made = Platform(tmp_path_factory.mktemp("e2e") / ".fairlead")
    try:
        with openid.provider(back=f"{made.url}/signin/provider/back", signin=f"{made.url}/signin/") as provider:
            made.variables = {
                "FAIRLEAD_OIDC_ISSUER": provider.issuer,
                "FAIRLEAD_OIDC_CLIENT_ID": openid.CLIENT_ID,
                "FAIRLEAD_OIDC_CLIENT_SECRET": openid.CLIENT_SECRET,
                "FAIRLEAD_OIDC_LABEL": "Sign in with Example",
            }
            made.start()
            yield made
            made.stop()
    except MissingPartError as missing:
        skip_or_fail(missing)


def as_owner(platform: Platform, secret: str) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Return the command line of who has this token and nothing else."""
    own = {"FAIRLEAD_URL": platform.url, "FAIRLEAD_TOKEN": secret}
    there = replace(platform, variables=own)
    return lambda *arguments: there.fairlead(*arguments, check=False)


def make_token(page: Page, name: str, scope: str, user: str = "") -> str:
    """Make a token on the page of tokens, and return the secret that is shown there."""
    page.get_by_role("link", name="Tokens").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Scope").select_option(scope)
    page.get_by_label("User").fill(user)
    page.get_by_role("button", name="Create token").click()
    made = page.locator("#made")
    expect(made.get_by_role("heading", name=f"Token {name} of")).to_be_visible()
    return made.locator("code").inner_text()


@drives("GET token-list", "POST token-list", "POST token-revoke")
def test_a_token_opens_the_platform_until_it_is_revoked(desk: Desk, platform: Platform) -> None:
    page = desk.page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    secret = make_token(page, "ci", "write", "robot")
    page.locator("#made").get_by_role("button", name="Copy").press("Enter")
    expect(page.locator("#made").get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    row = page.locator("#tokens").get_by_role("row").filter(has_text="robot")
    expect(row).to_contain_text("never")
    desk.look(page, "token-made")

    fairlead = as_owner(platform, secret)
    assert "robot" in fairlead("whoami").stdout
    other = desk.page(secret)
    expect(other.locator(".who-name")).to_have_text("ci")
    expect(other.get_by_role("link", name="Users", exact=True)).to_have_count(0)
    page.reload()
    expect(page.locator("#made")).to_be_empty()
    expect(row).not_to_contain_text("never")

    row.get_by_role("button", name="Revoke…").press("Enter")
    expect(row.get_by_role("button", name="Cancel")).to_be_focused()
    row.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    see(page, "Token ci is revoked.")
    expect(row).to_contain_text("revoked")
    refused = fairlead("whoami")
    assert refused.returncode == 1
    assert "revoked" in refused.stderr
    other.goto("/models/")
    expect(other.get_by_role("heading", name="Sign in")).to_be_visible()


@drives("GET key-list", "POST key-list", "POST key-limit", "POST key-rotate", "POST key-revoke")
def test_a_key_is_created_limited_rotated_and_revoked(desk: Desk, platform: Platform) -> None:
    page = desk.page()
    page.get_by_role("link", name="Keys", exact=True).click()
    page.get_by_label("Name").fill("nightly")
    page.get_by_label("Services").fill("default/*")
    page.get_by_role("button", name="Create key").click()
    issued = page.locator("#issued")
    expect(issued.get_by_role("heading", name="Token of key nightly")).to_be_visible()
    first = issued.locator("code#issued-token").inner_text()
    row = page.locator("#keys").get_by_role("row").filter(has_text="nightly")
    row.get_by_role("button", name="Limit…").click()
    row.get_by_label("Rows a minute").fill("9000")
    row.get_by_role("button", name="Set limits").click()
    expect(row.get_by_test_id("key-limits")).to_have_text("at most 9,000 rows a minute")
    row.get_by_role("button", name="Rotate…").click()
    row.get_by_label("Overlap").fill("1h")
    row.get_by_role("button", name="Rotate", exact=True).click()
    expect(row.get_by_test_id("overlap")).to_be_visible()
    assert issued.locator("code#issued-token").inner_text() not in {"", first}
    desk.look(page, "key-rotated")
    row.get_by_role("button", name="Revoke…").press("Enter")
    row.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    see(page, "Key nightly is revoked")
    shown = json.loads(platform.fairlead("keys", "show", "nightly", "--output", "json").stdout)
    assert not shown["valid"]


@drives(
    "GET team-list",
    "POST team-create",
    "GET team-detail",
    "POST member-set",
    "POST member-delete",
    "POST ownership-give",
    "POST ownership-take",
    "POST team-demand",
    "POST team-quota",
    "POST team-delete",
)
def test_what_a_member_may_push_follows_the_teams_page(
    desk: Desk, platform: Platform, tmp_path: Path, linear_model: Callable[..., bytes]
) -> None:
    file = tmp_path / "faces.onnx"
    file.write_bytes(linear_model())
    page = desk.page()
    page.get_by_role("link", name="Teams").click()
    page.get_by_label("Name").fill("vision")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="vision")).to_be_visible()
    expect(page.get_by_test_id("owns-nothing")).to_be_visible(timeout=WAIT_MS)
    page.get_by_label("User").fill("bob")
    page.get_by_role("button", name="Add member").click()
    see(page, "bob is viewer of vision now.")
    page.get_by_label("Kind").select_option("model")
    page.get_by_role("textbox", name="Name").fill("faces")
    page.get_by_role("button", name="Give to this team").click()
    expect(page.locator(".owned")).to_have_text(re.compile(r"model\s+faces"))
    fairlead = as_owner(platform, make_token(page, "bobs", "write", "bob"))

    def push() -> "subprocess.CompletedProcess[str]":
        return fairlead("models", "push", str(file), "--name", "faces", "--wait")

    assert "this needs the role deployer in team vision; user 'bob' is viewer" in push().stderr
    page.get_by_role("link", name="Teams").click()
    page.get_by_role("link", name="vision").click()
    page.get_by_label("Role of bob").select_option("deployer")
    page.get_by_role("button", name="Save").click()
    see(page, "bob is deployer of vision now.")
    desk.look(page, "team")
    pushed = push()
    assert pushed.returncode == 0, pushed.stderr
    page.get_by_role("link", name="Models", exact=True).click()
    page.get_by_role("link", name="faces").click()
    see(page, "READY")

    page.goto("/teams/vision/")
    page.get_by_label("Most versions").fill("1")
    page.get_by_label("Requests a second").fill("200")
    page.get_by_label("Rows a minute").fill("12000")
    page.get_by_role("button", name="Set quota").click()
    see(page, "Saved.")
    expect(page.get_by_test_id("team-rate")).to_have_text("at most 200 a second")
    expect(page.get_by_test_id("team-row-rate")).to_have_text("at most 12,000 a minute")
    file.write_bytes(linear_model(seed=2))
    assert "team 'vision' has 1 of 1 model versions" in push().stderr
    page.get_by_label("Approvals").fill("2")
    page.get_by_label("Approvers").select_option("yes")
    page.get_by_role("button", name="Set demand").click()
    see(page, "2 approvals of each rollout; approvers who signed in themselves")
    desk.look(page, "team-demand")
    ask(page, "Delete team…", "Delete team")
    see(page, re.compile("Team 'vision' owns model faces; give that to another team first"))
    ask(page, "Take away…", "Take away")
    expect(page.get_by_test_id("owns-nothing")).to_be_visible(timeout=WAIT_MS)
    assert "there is no model 'faces' that you may see" in push().stderr  # it is of the team default now
    ask(page, "Remove…", "Remove")
    see(page, "No members.")
    assert "vision" not in fairlead("teams", "list").stdout
    ask(page, "Delete team…", "Delete team")
    page.wait_for_url("**/teams/")
    expect(page.get_by_role("link", name="vision")).to_have_count(0)


@drives("GET user-list", "GET user-detail", "POST user-switch", "POST signout")
def test_somebody_who_is_switched_off_is_refused_with_every_token(desk: Desk, platform: Platform) -> None:
    page = desk.page()
    secret = make_token(page, "carols", "read", "carol")
    fairlead = as_owner(platform, secret)
    carol = desk.page(secret)
    page.get_by_role("link", name="Users", exact=True).click()
    page.get_by_label("Name contains").fill("CAR")
    page.keyboard.press("Enter")
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name="carol").click()
    page.get_by_role("button", name="Switch off…").press("Enter")
    expect(page.get_by_label("Why, for the audit log")).to_be_focused()
    page.keyboard.type("has left")
    page.keyboard.press("Enter")
    see(page, "carol is switched off.")
    desk.look(page, "user-switched-off")
    carol.goto("/models/")
    expect(carol.get_by_role("heading", name="Sign in")).to_be_visible()
    refused = fairlead("models", "list")
    assert refused.returncode == 1
    assert "switched off" in refused.stderr
    ask(page, "Let in again…", "Let carol in", {"Why, for the audit log": "is back"})
    see(page, "carol is let in again.")
    assert fairlead("models", "list").returncode == 0
    carol.get_by_label("API token").fill(secret)
    carol.get_by_role("button", name="Sign in with the token").click()
    carol.get_by_role("button", name="Sign out").click()
    expect(carol.get_by_role("heading", name="Sign in")).to_be_visible()
    carol.goto("/models/")
    expect(carol.get_by_role("heading", name="Sign in")).to_be_visible()


def at_provider(page: Page, account: str) -> None:
    """Sign in there by its own pages, whose fonts would come from elsewhere."""
    page.route(re.compile("^https://"), lambda route: route.fulfill(body="", content_type="text/css"))
    page.get_by_role("link", name="Sign in with Example").click()
    page.get_by_placeholder("Enter any login").fill(account)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url(re.compile(r"://[^/]+/$"))


@drives("POST user-free", "POST user-invite", "GET invitation", "GET provider-begin", "GET provider-back")
def test_a_user_is_unlinked_from_the_providers_account_and_linked_by_an_invitation(desk: Desk) -> None:
    admin = desk.page()
    page = desk.page(make_token(admin, "for the way in", "read", "dora"))
    page.get_by_role("button", name="Sign out").click()
    at_provider(page, "alice")
    expect(page.locator(".who-name")).to_have_text("alice")

    admin.get_by_role("link", name="Users", exact=True).click()
    expect(admin.get_by_role("row", name=re.compile("^alice at the provider"))).to_be_visible()
    admin.get_by_role("link", name="alice").click()
    desk.look(admin, "user-at-provider")
    ask(admin, "Unlink…", "Unlink")
    see(admin, "alice is unlinked from its account at the provider.")
    expect(admin.get_by_test_id("tokens-alone")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible(timeout=WAIT_MS)  # by itself: its stream ended
    page.get_by_role("link", name="Sign in with Example").click()
    see(page, re.compile("The name 'alice' is taken here by another user"))
    expect(admin.get_by_test_id("what-an-invitation-does")).to_be_visible()
    admin.get_by_role("button", name="Create invitation").click()
    expect(admin.get_by_test_id("send-the-link")).to_be_visible(timeout=WAIT_MS)
    page.goto(admin.locator("#invitation-link").inner_text())
    page.get_by_role("link", name="Sign in with Example").click()
    expect(page.locator(".who-name")).to_have_text("alice", timeout=WAIT_MS)
    admin.reload()
    see(admin, re.compile("Signs in at http://127.0.0.1"))


@drives("GET audit-list", "GET audit-export")
def test_what_was_done_is_in_the_log_and_in_its_files_as_narrowed(desk: Desk, tmp_path: Path) -> None:
    page = desk.page()
    for role in ("viewer", "admin"):
        page.goto("/teams/")
        if role == "viewer":
            page.get_by_label("Name").fill("logged")
            page.get_by_role("button", name="Create team").click()
        else:
            page.get_by_role("link", name="logged").click()
        page.get_by_label("User").fill("erin")
        page.get_by_label("Role", exact=True).select_option(role)
        page.get_by_role("button", name="Add member").click()
        see(page, f"erin is {role} of logged now.")
    page.get_by_role("link", name="Audit log").click()
    see(page, "session.signin")
    page.get_by_label("Object").fill("teams/logged")
    page.get_by_label("Action").fill("member.set")
    page.keyboard.press("Enter")
    entries = page.locator(".entries > li")
    expect(entries).to_have_count(2)
    expect(entries.first).to_contain_text("viewer → admin")
    expect(page.get_by_label("Object")).to_have_value("teams/logged")
    desk.look(page, "audit-narrowed")

    def exported(link: str) -> Path:
        with page.expect_download() as sent:
            page.get_by_role("link", name=link).click()
        kept = tmp_path / sent.value.suggested_filename
        sent.value.save_as(kept)
        return kept

    lines = [json.loads(line) for line in exported("Export JSON lines").read_text().splitlines()]
    assert [(line["action"], line["target"], line["after"]) for line in lines] == [
        ("member.set", "teams/logged/members/erin", {"role": "viewer"}),
        ("member.set", "teams/logged/members/erin", {"role": "admin"}),
    ]
    with exported("Export CSV").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [str(line["id"]) for line in lines]
    page.get_by_label("Person").fill("nobody")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_test_id("no-entry-like-that")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_role("link", name="Export CSV")).to_have_count(0)
    page.get_by_role("link", name="Show all").click()
    see(page, "team.create")
