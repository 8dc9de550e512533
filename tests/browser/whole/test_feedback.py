"""Answers are kept and scored on pages, with labels by the API; behind them a real platform."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.whole.desk import WAIT_MS, Desk
from tests.browser.whole.driven import drives
from tests.e2e.harness import Platform, failed, serve_digits, traffic

pytestmark = [pytest.mark.browser, pytest.mark.e2e]
POLICY = "name: quick\nsteps: [{weight: 100}]\n"


@drives("GET feedback", "POST feedback-keep", "POST scorer-set", "POST scorer-delete", "POST feedback-stop")
def test_answers_are_kept_labelled_and_scored(desk: Desk, platform: Platform, models: Path, tmp_path: Path) -> None:
    serve_digits(platform, models, POLICY)
    page = desk.page()
    page.goto("/services/default/digits/")
    page.get_by_role("link", name="Feedback").click()
    expect(page.get_by_test_id("feedback-steps")).to_be_visible()
    page.get_by_label("Keep inputs too").check()
    page.get_by_role("button", name="Keep answers").click()
    expect(page.get_by_test_id("kept-now")).to_contain_text("inputs, encrypted")
    page.get_by_label("Name").fill("right")
    page.get_by_label("Kind").select_option("topK")
    page.get_by_role("button", name="Add scorer").click()
    expect(page.locator("#notices")).to_contain_text("needs the option k")
    page.get_by_label("Kind").select_option("accuracy")
    page.get_by_role("button", name="Add scorer").click()
    expect(page.get_by_test_id("no-scores")).to_be_visible()

    with traffic(platform, models, tmp_path, "default/digits", rate=40) as sent:
        expect(page.get_by_test_id("coverage")).to_contain_text(re.compile(r"Answers kept\s*[1-9]"), timeout=WAIT_MS)
    assert failed(sent) == []
