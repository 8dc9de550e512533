"""Two versions brought, a policy written, and the second rolled out, taken back, tried again and rolled back: by pages.

What each page says is held against who answers the service's clients through Envoy.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.whole.desk import WAIT_MS, Desk, ask, see
from tests.browser.whole.driven import drives
from tests.browser.whole.served import answered_by, bring, linear_file
from tests.e2e.harness import Platform

pytestmark = [pytest.mark.browser, pytest.mark.e2e]
OLD, NEW = "linear-00001", "linear-00002"


def write_policies(desk: Desk, page: Page) -> None:
    """Write `brief` by the form and `spare` as a file, and delete `spare`."""
    page.get_by_role("link", name="Platform").first.click()
    page.get_by_role("link", name="Rollout policies").click()
    page.get_by_role("link", name="write the first").click()
    text, drawing = page.get_by_role("textbox", name="The policy file as YAML"), page.locator("#policy-drawing")
    page.get_by_label("Name", exact=True).fill("brief")
    page.get_by_role("button", name="Remove step 1").click()
    expect(drawing.locator(".track strong")).to_have_text(["50 %", "Live"])
    step = page.get_by_role("group", name="Step 1")
    step.get_by_label("Stay for").fill("1s")
    step.get_by_label("Analysis", exact=True).select_option("none")
    page.get_by_label("Keep the old revision for").fill("2s")
    expect(drawing).to_contain_text("Takes 1s, longer by 1 pause for people")
    expect(text).to_have_value(re.compile(r"^name: brief\n.*hold: 1s\n.*scaleDownDelay: 2s\n", re.S))
    page.keyboard.press("Control+Home")
    desk.look(page, "policy-written")
    page.get_by_role("button", name="Save policy").click()
    see(page, "Policy brief is there now.")

    page.get_by_role("link", name="Rollout policies").click()
    page.get_by_role("link", name="New policy").click()
    text.fill("name: spare\nsteps:\n- weight: 20\n  hold: ten\n")
    expect(drawing).to_contain_text("Line 4: ")
    text.fill("name: spare\nsteps:\n- weight: 20\n  hold: 10m\n")
    expect(drawing).to_contain_text("Takes 10m")
    page.get_by_role("button", name="Save policy").focus()
    page.keyboard.press("Enter")
    see(page, "Policy spare is there now.")
    ask(page, "Delete policy…", "Delete policy")
    see(page, "Policy spare is deleted.")
    expect(page.get_by_role("row")).to_have_count(2)  # the head, and brief


@drives(
    "GET policy-list",
    "GET policy-new",
    "POST policy-look",
    "POST policy-fill",
    "POST policy-apply",
    "GET policy-detail",
    "POST policy-delete",
    "POST deploy-rollout",
    "POST rollout-action promote",
    "POST rollout-action abort",
    "POST rollout-action retry",
    "POST service-rollback",
)
def test_a_version_is_rolled_out_aborted_tried_again_promoted_and_rolled_back(
    desk: Desk, platform: Platform, tmp_path: Path, linear_model: Callable[..., bytes]
) -> None:
    page = desk.page()
    for number in (1, 2):
        bring(page, linear_file(tmp_path, linear_model(seed=number), number), number)
    write_policies(desk, page)

    page.goto("/models/linear/versions/1/")
    page.get_by_role("link", name="Deploy", exact=True).click()
    page.get_by_label("Policy of later rollouts").select_option("brief")
    page.get_by_role("button", name="Create service").click()
    page.wait_for_url("**/services/default/linear/")
    expect(page.locator("#service-header").get_by_text("Ready", exact=True)).to_be_visible(timeout=WAIT_MS)
    answered_by(platform, "linear", OLD)

    page.goto("/models/linear/versions/2/")
    page.get_by_role("link", name="Deploy", exact=True).click()
    page.get_by_role("button", name="See the plan for default/linear").click()
    expect(page.locator("#plan")).to_contain_text("can begin")
    desk.look(page, "deploy-plan")
    page.get_by_role("button", name="Start the rollout in default/linear").click()
    page.wait_for_url(re.compile(r"/services/default/linear/rollouts/\d+/$"))
    page.evaluate("window.stayed = true")
    why, header, events = page.locator("#rollout-why"), page.locator("#rollout-header"), page.locator("#events")
    expect(why).to_contain_text("Paused by step", timeout=WAIT_MS)
    answered_by(platform, "linear", OLD, NEW)

    ask(page, "Abort…", "Abort", {"Why": "the labels are those of last year"})
    expect(header).to_contain_text("Aborted", timeout=WAIT_MS)
    expect(why).to_contain_text("the labels are those of last year")
    answered_by(platform, "linear", OLD)
    desk.look(page, "rollout-aborted")

    page.get_by_role("button", name="Retry…").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_label("Why").fill("the labels are right after all")
    page.keyboard.press("Enter")
    expect(header).to_contain_text("attempt 2", timeout=WAIT_MS)
    expect(events).to_contain_text("the labels are right after all")
    expect(why).to_contain_text("Paused by step", timeout=WAIT_MS)
    answered_by(platform, "linear", OLD, NEW)
    ask(page, "Promote…", "Promote")
    expect(header).to_contain_text("Healthy", timeout=WAIT_MS)
    assert page.evaluate("window.stayed") is True
    answered_by(platform, "linear", NEW)

    page.get_by_role("link", name="linear", exact=True).click()
    page.evaluate("window.stayed = true")
    ask(page, f"Roll back to {OLD}, version 1…", "Roll back")
    expect(page.locator("#rollout-head")).to_contain_text("version 2 → 1")
    expect(page.locator("#rollout-head")).to_contain_text("Healthy", timeout=WAIT_MS)
    expect(page.locator("#service-header")).to_contain_text("linear version 1", timeout=WAIT_MS)
    answered_by(platform, "linear", OLD)
    desk.look(page, "service-rolled-back")
    assert page.evaluate("window.stayed") is True

    page.get_by_role("link", name="brief", exact=True).first.click()
    see(page, re.compile("named by default/linear"))
    ask(page, "Delete policy…", "Delete policy")
    expect(page.locator("#notices")).to_contain_text("default/linear")
