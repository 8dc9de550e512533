"""A rollout watched and decided on its page; behind it a real server, worker, Envoy, runtimes and traffic."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.whole.desk import WAIT_MS, Desk
from tests.browser.whole.driven import drives
from tests.e2e.harness import Platform, failed, serve_digits, traffic

pytestmark = [pytest.mark.browser, pytest.mark.e2e]

POLICY = """
name: watched
strategy: canary
steps:
  - {weight: 20, hold: 3s, analysis: {minRequests: 100, maxErrorPercent: 1, maxSlowPercent: 50}}
  - {weight: 50, hold: 3s, pause: true, analysis: {minRequests: 100, maxErrorPercent: 1, maxSlowPercent: 50}}
scaleDownDelay: 1s
"""


@drives(
    "GET home",
    "GET home-stream",
    "GET service-list",
    "GET service-list-stream",
    "GET rollout-detail",
    "GET rollout-stream",
    "POST rollout-action promote",
)
def test_a_rollout_is_watched_until_its_pause_and_promoted_there(
    desk: Desk, platform: Platform, models: Path, tmp_path: Path
) -> None:
    serve_digits(platform, models, POLICY)
    page = desk.page()
    with traffic(platform, models, tmp_path, "default/digits") as log:
        platform.fairlead("rollouts", "start", "digits", "--version", "2")
        # It rolls, and waits for a person as soon as it is paused: on a busy machine that may be when one looks.
        coming = page.locator("#home-rolling, #home-waiting").get_by_role("link", name="digits", exact=True)
        expect(coming).to_be_visible(timeout=WAIT_MS)
        coming.click()
        page.evaluate("window.stayed = true")

        waits = page.locator("#rollout-why")
        expect(waits).to_contain_text("Paused by step", timeout=WAIT_MS)
        expect(page.locator(".track [aria-current=step]")).to_contain_text("50 %")
        errors = page.locator("evidence-plot[data-metric=server_errors]")
        expect(errors.locator("canvas")).to_have_count(2)
        expect(errors.locator(".readout")).to_contain_text(re.compile(r"step 2 · canary 0\s% \(surely 0\s% to "))
        desk.look(page, "rollout")

        page.get_by_role("button", name="Promote…").click()
        page.get_by_role("dialog").get_by_label("Why").fill("all four measurements are fine")
        page.get_by_role("dialog").get_by_role("button", name="Promote").click()
        expect(page.locator("#rollout-header")).to_contain_text("Healthy", timeout=WAIT_MS)
        expect(page.locator("#events")).to_contain_text("all four measurements are fine")
        expect(errors.locator("canvas")).to_have_count(2)
        assert page.evaluate("window.stayed") is True

        page.get_by_role("link", name="Services").first.click()
        page.evaluate("window.stayed = true")
        expect(page.locator(".services .now")).to_have_text(re.compile(r"^[1-9][\d.,]*/s$"), timeout=WAIT_MS)
        expect(page.locator(".services td[data-label=p99]")).to_contain_text("ms")
        expect(page.locator(".services td[data-label=Errors]")).to_have_text(re.compile(r"^\s*0\s%\s*$"))

    assert page.evaluate("window.stayed") is True
    assert failed(log) == []
