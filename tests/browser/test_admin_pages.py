"""The pages for who administers: forms that tell what went wrong, secrets shown once, answers that come alone."""

import ipaddress
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.fixtures import Settings

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, Identity, Membership, User
from accounts.services import teams
from clusters.services.cluster_selection import cluster_default
from deployments.reconcile.restarts import note_components
from events.models import WebhookDelivery
from events.services.subscriptions import webhook_test
from events.tasks import deliver
from integrations.clusters.base import Component, Nodes
from tests import scenes
from tests.browser.axe import violations

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> Iterator[None]:
    yield
    assert complaints == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """Return a page that is signed in as who administers the installation."""
    page = context.new_page()
    page.goto(f"/signin/#token={scenes.token(Scope.ADMIN, 'alice')}")
    page.wait_for_url(re.compile(r"://[^/]+/$"))
    return page


def test_a_team_is_made_and_gets_a_member_whose_role_changes(page: Page) -> None:
    page.get_by_role("link", name="Teams").click()
    page.get_by_label("Name").fill("vision")
    page.get_by_role("button", name="Create team").click()
    expect(page.get_by_role("heading", name="vision")).to_be_visible()
    page.get_by_label("User").fill("bob")
    page.get_by_role("button", name="Add member").click()
    expect(page.get_by_text("bob is viewer of vision now.")).to_be_visible()

    page.get_by_label("Role of bob").select_option("deployer")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("bob is deployer of vision now.")).to_be_visible()
    assert Membership.objects.get(user__username="bob").role == "deployer"

    page.get_by_role("button", name="Remove…").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No members.")).to_be_visible()


def test_what_cannot_be_done_is_told_and_the_form_keeps_what_was_typed(page: Page, complaints: list[str]) -> None:
    teams.team_create(name="vision", actor="test", now=timezone.now())
    page.goto("/teams/")
    page.get_by_label("Name").fill("vision")
    page.get_by_role("button", name="Create team").click()
    expect(page.locator("#notices")).to_contain_text("Team 'vision' is there already")
    expect(page.get_by_label("Name")).to_have_value("vision")
    assert all("409" in text for text in complaints)
    complaints.clear()


def test_a_new_token_can_be_copied_and_is_gone_after_a_reload(page: Page, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("link", name="Tokens").click()
    page.get_by_label("Name").fill("ci")
    page.get_by_label("Scope").select_option("write")
    page.get_by_role("button", name="Create token").click()
    page.locator("#made").get_by_role("button", name="Copy").click()
    expect(page.locator("#made").get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith("flt_")

    page.reload()
    expect(page.locator("#made")).to_be_empty()
    row = page.get_by_role("row").filter(has_text="ci")
    row.get_by_role("button", name="Revoke…").click()
    row.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("Token ci is revoked.")).to_be_visible()
    assert ApiToken.objects.get(name="ci").revoked_at is not None


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(202)
        self.end_headers()
        self.wfile.write(b"thanks for asking")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def receiver(settings: Settings) -> Iterator[str]:
    settings.EGRESS_ALLOWED_NETWORKS = (ipaddress.ip_network("127.0.0.0/8"),)
    server = HTTPServer(("127.0.0.1", 0), _Receiver)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_is_made_and_tested_and_its_answer_comes_by_itself(page: Page, receiver: str) -> None:
    page.get_by_role("link", name="Webhooks").click()
    page.get_by_label("Address").fill(receiver)
    page.get_by_label("RolloutHealthy").check()
    page.get_by_role("button", name="Create webhook").click()
    expect(page.locator("#made-secret")).to_contain_text("whsec_")
    expect(page.locator("#webhooks").get_by_role("link", name=receiver)).to_be_visible()
    expect(page.get_by_label("Address")).to_have_value("")
    expect(page.get_by_label("RolloutHealthy")).not_to_be_checked()
    page.locator("#made").get_by_role("link").click()

    page.get_by_role("button", name="Test").click()
    expect(page.locator("#answer").get_by_test_id("answer-awaited")).to_be_visible()
    deliver(WebhookDelivery.objects.get().pk)
    expect(page.locator("#answer")).to_contain_text("answered 202")
    expect(page.locator("#answer")).to_contain_text("thanks for asking")
    expect(page.locator("#deliveries")).to_contain_text("delivered")

    page.get_by_role("button", name="Post again").click()
    expect(page.locator("#answer").get_by_test_id("answer-awaited")).to_be_visible()
    deliver(WebhookDelivery.objects.latest("pk").pk)
    expect(page.locator("#answer")).to_contain_text("answered 202")

    page.get_by_text("What was posted by delivery").first.click()
    expect(page.locator("details[open] pre.payload")).to_contain_text('"event": "Test"')
    with page.expect_response(lambda answer: answer.url == page.url):
        pass  # the log was fetched anew meanwhile
    expect(page.locator("details[open] pre.payload")).to_be_visible()
    page.get_by_role("link", name="Failed").click()
    expect(page.get_by_text("No deliveries are failed.")).to_be_visible()

    page.get_by_role("button", name="Disable").click()
    expect(page.get_by_text("It receives no more events.")).to_be_visible()
    expect(page.get_by_role("button", name="Enable")).to_be_visible()


def test_somebody_is_switched_off_for_a_reason_and_let_in_again(page: Page) -> None:
    scenes.token(Scope.READ, "bob")
    page.get_by_role("link", name="Users", exact=True).click()
    page.get_by_role("link", name="bob").click()
    page.get_by_role("button", name="Switch off…").press("Enter")
    question = page.get_by_role("dialog", name="Switch bob off?")
    expect(question.get_by_label("Why, for the audit log")).to_be_focused()
    page.keyboard.type("has left")
    question.get_by_role("button", name="Switch bob off").click()
    expect(page.get_by_text("bob is switched off.")).to_be_visible()
    expect(page.get_by_text("has left")).to_be_visible()
    assert not User.objects.get(username="bob").is_active
    page.get_by_role("button", name="Let in again…").click()
    page.get_by_label("Why, for the audit log").fill("is back")
    page.get_by_role("button", name="Let bob in", exact=True).click()
    expect(page.get_by_text("bob is let in again.")).to_be_visible()
    assert User.objects.get(username="bob").is_active


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_pages_of_users_hold_for_everybody(
    page: Page, screenshots: Path, width: int, colours: Literal["light", "dark"]
) -> None:
    now = timezone.now()
    teams.team_create(name="x" * 63, actor="test", now=now)
    teams.member_set(team="x" * 63, username="u" * 150, role=Role.ADMIN, actor="test", now=now)
    scenes.token(Scope.WRITE, "bob")
    Identity.objects.create(user=User.objects.get(username="bob"), issuer="https://id.example/" + "y" * 60, subject="7")
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=colours)
    for name, path in (("list", "/users/"), ("long", f"/users/{'u' * 150}/"), ("detail", "/users/bob/")):
        page.goto(path)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        page.screenshot(path=screenshots / f"users-{name}-{width}-{colours}.png", full_page=True)


def test_the_log_is_narrowed_by_a_click_on_an_object(page: Page) -> None:
    now = timezone.now()
    teams.team_create(name="vision", actor="test", now=now)
    teams.member_set(team="vision", username="bob", role=Role.VIEWER, actor="test", now=now)
    teams.member_set(team="vision", username="bob", role=Role.ADMIN, actor="test", now=now)
    page.get_by_role("link", name="Audit log").click()
    page.get_by_role("link", name="teams/vision/members/bob").first.click()
    expect(page.locator(".entries > li")).to_have_count(2)
    expect(page.locator(".difference").first).to_contain_text("viewer → admin")
    page.get_by_role("link", name="Show all").click()
    expect(page.get_by_text("session.signin").first).to_be_visible()


def test_the_log_is_exported_as_it_is_narrowed(page: Page) -> None:
    teams.team_create(name="vision", actor="test", now=timezone.now())
    page.goto("/audit/?action=team.create")
    with page.expect_download() as sent:
        page.get_by_role("link", name="Export JSON lines").press("Enter")
    lines = sent.value.path().read_text().splitlines()
    assert {json.loads(line)["target"] for line in lines} == {"teams/vision"}


def test_the_platforms_parts_follow_without_a_reload(page: Page) -> None:
    cluster = cluster_default(now=timezone.now())
    page.get_by_role("link", name="Platform").click()
    page.evaluate("window.stayed = true")
    note_components(cluster_id=cluster.pk, nodes=Nodes((Component("envoy", True, 1),)), now=timezone.now())
    expect(page.get_by_text("Envoy ended by itself and was started again (restart 1)")).to_be_visible()
    assert page.evaluate("window.stayed") is True


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_page_is_wider_than_the_screen(page: Page, width: int, colours: Literal["light", "dark"]) -> None:
    now = timezone.now()
    long = "x" * 63
    teams.team_create(name=long, actor="test", now=now)
    teams.member_set(team=long, username="u" * 150, role=Role.ADMIN, actor="test", now=now)
    hook = scenes.webhook(team=long, url="https://a.example/" + "y" * 200).webhook
    webhook_test(webhook_id=hook.pk, teams=None, actor="test", now=now)
    cluster = cluster_default(now=now)
    note_components(cluster_id=cluster.pk, nodes=Nodes((Component("envoy", True, 1, "z" * 200),)), now=now)
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=colours)

    for path in (
        "/teams/",
        f"/teams/{long}/",
        "/tokens/",
        "/audit/",
        "/webhooks/",
        f"/webhooks/{hook.pk}/",
        "/platform/",
    ):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_every_page_is_reached_from_the_head_without_scrolling_sideways(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    links = page.locator(".nav a")
    expect(links).to_have_count(11)
    for link in links.all():
        box = link.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width, link.inner_text()
    assert page.evaluate("document.querySelector('.nav').scrollWidth <= document.querySelector('.nav').clientWidth")


def test_forms_work_without_a_script(browser: Any, server: str) -> None:
    context = browser.new_context(base_url=server, java_script_enabled=False)
    page = context.new_page()
    page.goto("/tokens/")
    page.get_by_label("API token").fill(scenes.token(Scope.ADMIN, "alice"))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Name").fill("ci")
    page.get_by_role("button", name="Create token").click()
    expect(page.locator("#made-token")).to_contain_text("flt_")
    page.goto("/teams/")
    page.get_by_label("Name").fill("vision")
    page.get_by_role("button", name="Create team").click()
    expect(page.get_by_text("Team vision is created; now add members.")).to_be_visible()
    context.close()
