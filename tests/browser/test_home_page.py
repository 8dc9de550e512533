"""Home as people see and use it."""

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from accounts.domain.approver import Approver
from deployments.domain.phases import Code, Phase
from deployments.models import Rollout
from registry.domain.approval import Approval
from registry.services.governance import version_decide
from tests import scenes
from tests.browser.states.of_home import version_awaited

pytestmark = pytest.mark.browser

PAUSED = {"phase": Phase.PAUSED, "reason_code": Code.PAUSED_BY_STEP, "reason_message": "step 2 asks for a person"}


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> None:
    yield
    assert complaints == []


def test_it_follows_a_rollout_from_nothing_to_its_end_without_a_reload(page: Page) -> None:
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    expect(page.get_by_test_id("three-steps")).to_be_visible()
    page.evaluate("window.stayed = true")

    row = scenes.rollout(scenes.service())
    rolling, waiting = page.locator("#home-rolling"), page.locator("#home-waiting")
    expect(rolling).to_contain_text("Step 1 of 3, 10 %")
    expect(page.locator("#home-live")).to_contain_text("digits")
    expect(page.locator("#home-lately")).to_contain_text("was created by test")
    scenes.move(row, step_index=1, **PAUSED)
    expect(waiting).to_contain_text("Step 2 asks for a person")
    expect(page.locator("#announcer")).to_have_text("1 rollout waits for you")
    expect(page.locator("#home-figures li").first).to_have_text("1 action required")
    expect(rolling.get_by_test_id("no-other-rollout")).to_be_visible()

    assert page.evaluate("window.stayed") is True


def test_what_waits_is_decided_with_the_keyboard_and_the_back_button_leads_home(page: Page) -> None:
    scenes.move(scenes.rollout(scenes.service()), step_index=1, **PAUSED)
    page.goto("/")

    page.get_by_role("link", name="Promote or abort digits").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Promote…").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_label("Why").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#rollout-header")).to_contain_text("Progressing")
    assert Rollout.objects.get().phase == Phase.PROGRESSING

    page.go_back()
    expect(page.locator("#home-rolling")).to_contain_text("digits")
    expect(page.locator("#home-waiting")).to_contain_text("Nothing.")


def test_a_version_is_approved_by_the_way_that_home_shows(page: Page) -> None:
    scenes.service()
    page.goto("/")
    page.evaluate("window.stayed = true")
    row = version_awaited()
    waiting = page.locator("#home-waiting")
    expect(waiting.get_by_test_id("approval-needed")).to_be_visible()
    expect(page.locator("#announcer")).to_have_text("1 version waits for your approval")
    assert page.evaluate("window.stayed") is True

    page.get_by_role("link", name="Approve or decline fraud-scores version 7").click()
    expect(page.get_by_role("heading", name="fraud-scores")).to_be_visible()
    page.go_back()
    expect(waiting).to_contain_text("fraud-scores version 7")

    said = {"decision": Approval.APPROVED, "comment": "", "approver": Approver("bob"), "actor": "bob"}
    version_decide(model=row.model.name, number=row.number, now=timezone.now(), **said)
    expect(waiting).to_contain_text("Nothing.")


def test_a_figure_leads_to_its_list_and_the_address_keeps_it(page: Page) -> None:
    for number in range(6):
        scenes.rollout(scenes.service(f"service-{number}"))
    page.set_viewport_size({"width": 390, "height": 600})
    page.goto("/")
    page.get_by_role("link", name="6 live").click()

    expect(page.get_by_role("heading", name="Live", exact=True)).to_be_in_viewport()
    assert page.url.endswith("/#home-live")


def test_it_says_when_what_it_shows_is_old(page: Page, complaints: list[str]) -> None:
    scenes.service()
    page.clock.install()

    def refuse(route: Route) -> None:
        route.abort()

    page.route("**/stream*", refuse)
    page.goto("/")
    expect(page.get_by_text("Reconnecting")).to_be_visible()
    page.clock.run_for(75_000)
    expect(page.locator("live-stream")).to_contain_text("Not live: this is how it was")
    page.close()  # the stream would try, and complain, again
    assert all("ERR_FAILED" in text for text in complaints)
    complaints.clear()


def test_ten_thousand_services_are_counted_and_not_listed(page: Page) -> None:
    scenes.copies(scenes.service(), 10_000)

    page.goto("/")

    expect(page.get_by_role("link", name="All 1,000+ services")).to_be_visible()
    expect(page.locator("#home-live tbody tr")).to_have_count(8)
    expect(page.locator("live-stream")).to_have_text("Live")
