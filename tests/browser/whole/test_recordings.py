"""What clients send is recorded on pages and answered again by another version; behind it a real platform."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.whole.desk import WAIT_MS, Desk
from tests.browser.whole.driven import drives
from tests.e2e.harness import Platform, failed, serve_digits, traffic

pytestmark = [pytest.mark.browser, pytest.mark.e2e]
POLICY = "name: quick\nsteps: [{weight: 100}]\n"


@drives(
    "GET recording-list",
    "POST recording-list",
    "GET recording-detail",
    "GET recording-stream",
    "POST recording-stop",
    "POST recording-delete",
    "POST replay-start",
    "GET replay-detail",
    "GET replay-stream",
)
def test_requests_are_recorded_and_another_version_is_tried_on_them(
    desk: Desk, platform: Platform, models: Path, tmp_path: Path
) -> None:
    serve_digits(platform, models, POLICY)
    page = desk.page()
    page.goto("/services/default/digits/")
    page.get_by_role("link", name="Recordings").click()
    page.get_by_label("Why these requests may be kept").fill("They are made up by this test; nobody is in them.")
    page.get_by_label("At most, requests").fill("5000")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/services/default/digits/recordings/\d+/$"))
    expect(page.get_by_test_id("none-came")).to_be_visible()

    state, log = page.locator("#recording-state"), page.locator("#requests")
    with traffic(platform, models, tmp_path, "default/digits", rate=40) as sent:
        expect(state).to_contain_text(re.compile(r"Requests\s*[1-9]"), timeout=WAIT_MS)  # by the stream
        expect(log.get_by_role("row").nth(1)).to_contain_text("digits-00001", timeout=WAIT_MS)
        expect(log.get_by_text("answered", exact=True).first).to_be_visible()
        expect(log.get_by_role("row").nth(1)).to_contain_text(re.compile(r"[1-9]\d*\sms"))
        desk.look(page, "recording")
        page.get_by_role("button", name="Stop…").click()
        page.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()
        expect(state.get_by_text("ended", exact=True)).to_be_visible()
    assert failed(sent) == []
    expect(state.get_by_role("button", name="Stop…")).to_have_count(0)

    page.get_by_label("Version that answers").select_option(label="version 2")
    page.get_by_test_id("more-terms").click()
    page.get_by_label("Comparison settings, as YAML").fill("minPairs: 1\ntolerances: {probabilities: {abs: oops}}")
    page.get_by_role("button", name="Start the replay").click()
    expect(page.locator("#notices")).to_contain_text("tolerances.probabilities.abs is 'oops'")
    page.get_by_label("Comparison settings, as YAML").fill("minPairs: 1")
    page.get_by_role("button", name="Start the replay").click()
    page.wait_for_url(re.compile(r"/services/default/digits/replays/\d+/$"))
    expect(page.get_by_role("heading", name="Answers compared")).to_be_visible(timeout=WAIT_MS)  # by the stream
    desk.look(page, "replay")
    expect(page.get_by_text(re.compile(r"The new version.s answers agree with stable.s in"))).to_be_visible()

    page.get_by_role("link", name=re.compile(r"^recording \d+$")).click()
    expect(page.get_by_role("link", name="By version 2")).to_be_visible()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    page.wait_for_url("**/services/default/digits/recordings/")
    expect(page.get_by_test_id("no-recording")).to_be_visible()
    expect(page.get_by_text("of a deleted recording")).to_be_visible()
