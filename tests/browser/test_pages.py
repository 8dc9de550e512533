"""The pages as people see and use them."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, expect

from accounts.domain.scopes import Scope
from deployments.domain.phases import Code, Phase
from deployments.models import Revision, Rollout
from deployments.services import rollout_abort
from tests import scenes

pytestmark = pytest.mark.browser

DETAIL = "/services/default/digits/"


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> None:
    yield
    assert complaints == []


def test_a_link_with_a_token_signs_in_and_leaves_no_trace_of_it(context: BrowserContext) -> None:
    page = context.new_page()
    secret = scenes.token(Scope.READ, "reader")
    scenes.service()

    page.goto(f"/signin/?next={DETAIL}#token={secret}")

    expect(page.get_by_role("heading", name="digits", exact=True)).to_be_visible()
    assert page.url.endswith(DETAIL)
    page.go_back()
    assert secret not in page.url
    page.goto("/services/")
    expect(page.get_by_text("reader", exact=True)).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_the_list_follows_without_a_reload(page: Page) -> None:
    page.goto("/services/")
    expect(page.get_by_role("heading", name="No services yet")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.evaluate("window.stayed = true")

    rollout = scenes.rollout(scenes.service())
    expect(page.get_by_text("Step 1 of 3, 10 %")).to_be_visible()
    scenes.move(rollout, step_index=1)
    expect(page.get_by_text("Step 2 of 3, 25 %")).to_be_visible()

    assert page.evaluate("window.stayed") is True


def test_the_detail_follows_without_a_reload(page: Page) -> None:
    rollout = scenes.rollout(scenes.service())
    page.goto(DETAIL)
    page.evaluate("window.stayed = true")
    expect(page.get_by_text("The canary has answered 200 requests at 10 %")).to_be_visible()

    scenes.move(rollout, step_index=1, reason_message="waiting for 40 more requests")
    expect(page.get_by_text("Waiting for 40 more requests")).to_be_visible()
    expect(page.locator(".track [aria-current=step]")).to_contain_text("25 %")
    expect(page.locator("#revisions")).to_contain_text("75 %")
    rollout_abort(rollout_id=rollout.pk, actor="alice", now=timezone.now())
    expect(page.locator("#events li").first).to_contain_text("Aborted")
    expect(page.get_by_role("button", name="Retry…")).to_be_visible()

    assert page.evaluate("window.stayed") is True


def test_a_pause_is_left_by_the_promote_button_after_a_question(page: Page) -> None:
    paused = {"phase": Phase.PAUSED, "reason_code": Code.PAUSED_BY_STEP, "reason_message": "step 2 asks for a person"}
    scenes.move(scenes.rollout(scenes.service()), step_index=1, **paused)
    page.goto(DETAIL)

    page.get_by_role("button", name="Promote…").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Send 50 % of the requests to version 2?")
    question.get_by_role("button", name="Cancel").click()
    expect(question).to_be_hidden()
    assert Rollout.objects.get().phase == Phase.PAUSED

    page.get_by_role("button", name="Promote…").click()
    page.get_by_role("dialog").get_by_role("button", name="Promote").click()
    expect(page.locator("#rollout-head")).to_contain_text("Progressing")
    assert Rollout.objects.get().phase == Phase.PROGRESSING


def test_an_open_question_outlives_an_update_of_the_page_around_it(page: Page) -> None:
    rollout = scenes.rollout(scenes.service())
    page.goto(DETAIL)
    page.get_by_role("button", name="Abort…").click()

    scenes.move(rollout, step_index=1, phase=Phase.PAUSED)

    expect(page.get_by_role("button", name="Promote…")).to_be_attached()
    expect(page.get_by_role("dialog")).to_contain_text("Abort this rollout?")


def test_an_action_that_came_too_late_is_told_about_in_words(page: Page, complaints: list[str]) -> None:
    rollout = scenes.rollout(scenes.service())
    page.route("**/stream*", lambda route: route.abort())
    page.goto(DETAIL)
    page.get_by_role("button", name="Abort…").click()
    rollout_abort(rollout_id=rollout.pk, actor="alice", now=timezone.now())

    page.get_by_role("dialog").get_by_role("button", name="Abort").click()

    expect(page.locator("#notices")).to_contain_text("Aborted")
    page.close()  # the stream would try, and complain, again
    assert all("409" in text or "ERR_FAILED" in text for text in complaints)
    complaints.clear()


def test_a_hidden_tab_holds_no_connection_and_catches_up_when_it_is_seen(page: Page) -> None:
    rollout = scenes.rollout(scenes.service())
    page.goto(DETAIL)
    expect(page.locator("live-stream[data-connection=open]")).to_be_visible()

    with page.expect_event("requestfailed", lambda request: "/stream" in request.url):
        _show(page, hidden=True)
    scenes.move(rollout, step_index=1, reason_message="what happened meanwhile")
    with page.expect_request("**/stream?seen=*"):
        _show(page, hidden=False)

    expect(page.get_by_text("What happened meanwhile")).to_be_visible()


def test_a_screen_reader_hears_of_steps_and_phases(page: Page) -> None:
    rollout = scenes.rollout(scenes.service())
    page.goto(DETAIL)

    scenes.move(rollout, step_index=1)

    expect(page.locator("#announcer")).to_have_text("Step 2 of 3, 25 %")
    assert page.locator("#announcer").get_attribute("aria-live") == "polite"


def test_the_curl_line_can_be_copied(page: Page, context: BrowserContext) -> None:
    scenes.service()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(DETAIL)

    page.locator("#calling").get_by_role("button", name="Copy").click()

    expect(page.locator("#calling").get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("curl http://127.0.0.1:8090/serving/default/digits/v2/models/digits/infer -d '")


def test_the_pages_work_without_a_script(browser: Browser, server: str) -> None:
    context = browser.new_context(base_url=server, java_script_enabled=False)
    scenes.rollout(scenes.service(), step_index=1, phase=Phase.PAUSED)
    page = context.new_page()
    page.goto(DETAIL)
    page.get_by_label("API token").fill(scenes.token(Scope.WRITE))
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("heading", name="digits", exact=True)).to_be_visible()
    page.get_by_role("button", name="Abort…").click()
    page.get_by_role("dialog").get_by_role("button", name="Abort").click()

    expect(page.get_by_text("Aborted; all requests go back")).to_be_visible()
    expect(page.locator("relative-time").first).to_have_text(re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"))
    context.close()


def _show(page: Page, *, hidden: bool) -> None:
    """Tell the page that its tab was hidden or is seen again; a headless browser has no tabs to switch."""
    page.evaluate(
        """(hidden) => {
            Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_replicas_that_follow_the_load_are_told_with_the_reason(page: Page) -> None:
    service = scenes.service()
    Revision.objects.filter(service=service).update(
        replicas=3, max_replicas=8, load={"why": "42 requests in flight per replica, target 10"}
    )
    page.goto(DETAIL)
    revisions = page.locator("#revisions")
    assert "1 to 8" in revisions.inner_text()
    assert "digits-00001 runs 3 by its load: 42 requests in flight per replica, target 10." in revisions.inner_text()
    assert revisions.evaluate("card => card.scrollWidth <= card.clientWidth"), "nothing is cut off"


def test_a_failing_revision_says_why_and_a_healed_one_keeps_it_folded(page: Page) -> None:
    service = scenes.service()
    scenes.rollout(service)
    scenes.failure(service, "digits-00001", is_failing=False)
    page.goto(DETAIL)
    healed = page.locator("#failure-digits-00001")
    expect(healed.get_by_test_id("last-failure")).to_be_visible()
    expect(healed.get_by_test_id("last-lines")).to_be_hidden()

    scenes.failure(service, "digits-00002")
    failing = page.locator("#failure-digits-00002")
    expect(failing.locator("pre")).to_contain_text("<b>it is not</b> a protobuf")
    expect(failing).to_contain_text("Exit code")
    expect(failing.locator("ol li").first).to_contain_text("4 times")
