"""A model from a drop on a page to an answer on a page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser._support.images import png
from tests.browser._support.models import colours_model
from tests.browser._support.uploads import drop
from tests.browser.whole.desk import WAIT_MS, Desk
from tests.browser.whole.driven import drives

pytestmark = [pytest.mark.browser, pytest.mark.e2e]


def code(page: Page, which: str) -> str:
    return page.locator(f"#code-{which}").inner_text()


def run(*command: str, folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=True).stdout


@drives(
    "GET model-list",
    "POST signin",
    "GET signin",
    "GET version-detail",
    "GET try",
    "POST try-send",
    "POST try-request",
    "POST trial-start",
    "GET trial",
    "GET deploy",
    "POST deploy-service",
    "GET service-detail",
    "GET service-stream",
)
def test_a_model_is_dropped_deployed_and_asked_with_a_picture(desk: Desk, tmp_path: Path) -> None:
    page = desk.page()
    page.goto("/models/")
    drop(page, colours_model(tmp_path / "colours.zip"))
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/models/colours/versions/1/")
    expect(page.get_by_text("READY", exact=True)).to_be_visible(timeout=WAIT_MS)  # without a reload by hand
    page.get_by_role("link", name="Try it").click()
    expect(page.get_by_test_id("runtime-is-started")).to_be_visible()
    page.get_by_label("Picture for image").set_input_files(png(tmp_path / "blue.png", 60, 40, (0, 51, 255)))
    page.get_by_role("button", name="Try it").click()
    tried = page.locator("#try-outcome section").first
    expect(tried.get_by_test_id("run-for-this")).to_be_visible(timeout=WAIT_MS)
    best = tried.locator(".scores tbody tr")
    assert [row.split()[:3] for row in best.all_inner_texts()] == [
        ["blue", "2", "1"],
        ["green", "1", "0.2"],
        ["red", "0", "0"],
    ]
    expect(tried.get_by_text(re.compile(r"^[\d.,]+ ms, the median of 5$"))).to_be_visible()
    page.wait_for_url("**/models/colours/versions/1/try/trials/*/")
    desk.look(page, "try-trial-answer")
    page.get_by_text("As numbers").click()
    page.get_by_role("button", name="Remove it").click()
    page.get_by_label("image as JSON").fill("[[[[1]], [[2]], [[3]]]]")
    page.get_by_role("button", name="Try it").click()
    expect(tried.get_by_text(re.compile("The runtime answered 400: .*image"))).to_be_visible(timeout=WAIT_MS)
    desk.look(page, "try-trial-refused")
    page.get_by_role("link", name="Deploy it").click()
    page.get_by_role("button", name="Create service").click()
    page.wait_for_url("**/services/default/colours/")
    expect(page.locator("#service-header").get_by_text("Ready", exact=True)).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("link", name="Try it").click()

    page.get_by_label("Picture for image").set_input_files(png(tmp_path / "teal.png", 60, 40, (0, 102, 204)))
    expect(page.get_by_role("img", name="The picture as it is sent")).to_be_visible()
    page.get_by_role("button", name="Send it").focus()
    page.keyboard.press("Enter")
    answer = page.locator("#try-outcome section").first
    expect(answer.get_by_text("colours-00001")).to_be_visible(timeout=WAIT_MS)
    rows = answer.locator(".scores tbody tr")
    expect(rows).to_have_count(3)
    assert [row.split()[:3] for row in rows.all_inner_texts()] == [
        ["blue", "2", "0.8"],
        ["green", "1", "0.4"],
        ["red", "0", "0"],
    ]
    expect(answer.get_by_text(re.compile(r"^[\d.,]+ ms, by revision"))).to_be_visible()
    desk.look(page, "try-answer")

    with page.expect_download() as download:
        page.get_by_role("button", name="Download request.json").click()
    download.value.save_as(tmp_path / "request.json")
    assert "0.8" in run("bash", "-c", code(page, "curl"), folder=tmp_path)
    assert "0.8" in run(sys.executable, "-c", code(page, "python"), folder=tmp_path)
    assert "0.8" in run(sys.executable, "-c", code(page, "triton"), folder=tmp_path)

    page.get_by_label("Values", exact=True).select_option("0 to 255")
    page.get_by_role("button", name="Send it").click()
    expect(rows.first).to_contain_text("204")
    page.get_by_role("button", name="Remove it").click()
    page.get_by_text("As numbers").click()
    page.get_by_label("image as JSON").fill("[[[[1]], [[2]], [[3]]]]")
    page.get_by_role("button", name="Send it").click()
    expect(answer.get_by_text(re.compile("The service answered 400: .*image"))).to_be_visible()
    desk.look(page, "try-refused")
    for which in ("curl", "python", "triton"):
        assert "[[[[1]], [[2]], [[3]]]]" in code(page, which)
