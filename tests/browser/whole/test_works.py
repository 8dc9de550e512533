"""A version is built anew, and a service is tuned and configured by what was found."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser._support.uploads import drop
from tests.browser.whole.desk import WAIT_MS, Desk
from tests.browser.whole.driven import drives

pytestmark = [pytest.mark.browser, pytest.mark.e2e]


@drives(
    "GET build-list",
    "POST build-list",
    "GET build-detail",
    "GET build-stream",
    "GET version-compare",
    "GET tuning-list",
    "POST tuning-list",
    "GET tuning-detail",
    "GET tuning-stream",
)
def test_a_version_is_built_anew_and_a_service_is_tuned_and_configured(
    desk: Desk, tmp_path: Path, linear_model: Callable[..., bytes]
) -> None:
    page = desk.page()
    (tmp_path / "linear.onnx").write_bytes(linear_model())
    page.goto("/models/")
    drop(page, tmp_path / "linear.onnx")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/models/linear/versions/1/")
    expect(page.get_by_text("READY", exact=True)).to_be_visible(timeout=WAIT_MS)

    page.get_by_role("link", name="Build…").click()
    page.get_by_role("button", name="Start build").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/models/linear/versions/1/builds/\d+/$"))
    became = page.get_by_role("link", name="linear version 2")
    expect(became).to_be_visible(timeout=WAIT_MS)  # by the stream, without a reload
    expect(page.get_by_role("link", name="Deploy it")).to_be_visible(timeout=WAIT_MS)
    desk.look(page, "build-became")
    page.get_by_role("link", name="Compare with version 1").click()
    expect(page.get_by_role("heading", name="Version 2 beside version 1")).to_be_visible()

    page.goto("/deploy/linear/1/")
    page.get_by_role("button", name="Create service").click()
    page.wait_for_url("**/services/default/linear/")
    expect(page.locator("#service-header").get_by_text("Ready", exact=True)).to_be_visible(timeout=WAIT_MS)
    page.goto("/models/linear/versions/1/")
    page.get_by_role("link", name="Tune…").click()
    page.get_by_label("Longest latency, ms").fill("500")
    page.get_by_label("Time limit").fill("12s")
    page.get_by_role("button", name="Start the search").click()
    expect(page.get_by_role("heading", name="Tuning for a p99 of 500 ms")).to_be_visible()
    expect(page.locator("#tuning-state")).to_contain_text(re.compile(r"\d+ measured"), timeout=WAIT_MS)
    expect(page.get_by_role("heading", name="Results")).to_be_visible(timeout=2 * WAIT_MS)
    expect(page.locator("svg.frontier circle").first).to_be_visible()
    desk.look(page, "tuning-found")
    changes = page.get_by_role("button", name="See what would change")
    stays = page.get_by_test_id("config-stays")
    expect(changes.or_(stays)).to_be_visible()
    if changes.is_visible():
        changes.click()
        page.get_by_role("button", name="Apply…").click()
        question = page.get_by_role("dialog").filter(has_text="Apply this to default/linear?")
        question.get_by_role("button", name="Apply", exact=True).click()
        page.wait_for_url("**/services/default/linear/")
        expect(page.get_by_text("Applied the file of default/linear.")).to_be_visible()
        expect(page.locator("#service-header").get_by_text("Ready", exact=True)).to_be_visible(timeout=WAIT_MS)
