"""A rollout that waits for two people, each at a browser of their own; behind it a real platform that answers clients.

Whoever started it may not approve it. What one does the others see without a reload.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.whole.desk import WAIT_MS, Desk, ask
from tests.browser.whole.driven import drives
from tests.browser.whole.served import answered_by, bring, linear_file
from tests.e2e.harness import Platform

pytestmark = [pytest.mark.browser, pytest.mark.e2e]
OLD, NEW = "linear-00001", "linear-00002"
POLICY = """\
name: agreed
steps:
- weight: 50
  hold: 1s
  pause: {approvals: 2, fourEyes: true}
scaleDownDelay: 1s
"""


def at_rollout(page: Page) -> None:
    """Find, on the start page, the rollout that waits for this person, and stay on its page from then on."""
    page.locator("#home-waiting").get_by_role("link", name="linear", exact=True).click()
    page.wait_for_url(re.compile(r"/services/default/linear/rollouts/\d+/$"))
    page.evaluate("window.stayed = true")


@drives(
    "POST deploy-rollout",
    "POST rollout-approval approve",
    "POST rollout-approval withdraw",
    "POST rollout-approval reject",
    "POST rollout-action retry",
)
def test_two_colleagues_decide_on_a_rollout_and_each_sees_what_the_other_did(
    desk: Desk, platform: Platform, tmp_path: Path, linear_model: Callable[..., bytes]
) -> None:
    starter = desk.page()
    for number in (1, 2):
        bring(starter, linear_file(tmp_path, linear_model(seed=number), number), number)
    starter.goto("/policies/new")
    starter.get_by_role("textbox", name="The policy file as YAML").fill(POLICY)
    expect(starter.locator("#policy-drawing")).to_contain_text("then 2 approvals")
    starter.get_by_role("button", name="Save policy").click()
    starter.goto("/deploy/linear/1/")
    starter.get_by_label("Policy of later rollouts").select_option("agreed")
    starter.get_by_role("button", name="Create service").click()
    starter.wait_for_url("**/services/default/linear/")
    expect(starter.locator("#service-header").get_by_text("Ready", exact=True)).to_be_visible(timeout=WAIT_MS)
    starter.goto("/deploy/linear/2/?service=default/linear")
    starter.get_by_role("button", name="Start the rollout in default/linear").click()
    starter.wait_for_url(re.compile(r"/services/default/linear/rollouts/\d+/$"))
    starter.evaluate("window.stayed = true")
    asked, given = starter.locator("#rollout-approvals"), starter.locator("#rollout-approvals tbody tr")
    expect(asked).to_contain_text("of step 1: 0 of 2", timeout=WAIT_MS)
    expect(asked).to_contain_text("the policy asks for four eyes; somebody else has to approve")
    expect(starter.get_by_role("button", name="Approve…")).to_have_count(0)
    answered_by(platform, "linear", OLD, NEW)

    bea, cy = desk.page(platform.token_of("bea")), desk.page(platform.token_of("cy"))
    cy.set_viewport_size({"width": 390, "height": 844})  # at the telephone, at night
    cy.emulate_media(color_scheme="dark")
    at_rollout(bea)
    at_rollout(cy)
    ask(bea, "Approve…", "Approve", {"What you looked at": "fifty of its answers"})
    for page in (bea, cy, starter):
        expect(page.locator("#rollout-approvals")).to_contain_text("of step 1: 1 of 2", timeout=WAIT_MS)
    expect(given).to_contain_text("fifty of its answers")
    expect(bea.locator("#rollout-approvals")).to_contain_text("the 2 have to be of different people. Four eyes:")
    desk.look(bea, "approval-given")
    desk.look(cy, "approval-asked-390-dark")
    assert cy.evaluate("document.documentElement.scrollWidth") <= 390
    expect(bea.get_by_role("button", name="Approve…")).to_have_count(0)
    ask(bea, "Withdraw…", "Withdraw")
    for page in (bea, cy, starter):
        expect(page.locator("#rollout-approvals")).to_contain_text("of step 1: 0 of 2", timeout=WAIT_MS)
    expect(given).to_contain_text("withdrawn")

    cy.get_by_role("button", name="Reject…").focus()
    cy.keyboard.press("Enter")
    cy.get_by_role("dialog").get_by_label("Why").focus()
    cy.keyboard.press("Enter")
    expect(cy.get_by_role("dialog")).to_be_visible()  # without a reason it is not sent
    cy.keyboard.type("the two have other units")
    cy.keyboard.press("Enter")
    for page in (cy, bea, starter):
        expect(page.locator("#rollout-header")).to_contain_text("Aborted", timeout=WAIT_MS)
        expect(page.locator("#rollout-why")).to_contain_text("the two have other units")
    desk.look(starter, "approval-rejected")
    answered_by(platform, "linear", OLD)

    ask(starter, "Retry…", "Retry", {"Why": "they agree on the units now"})
    for page, count in ((bea, 1), (cy, 2)):
        approve = page.get_by_role("button", name="Approve…")
        expect(approve).to_be_visible(timeout=WAIT_MS)  # by the stream
        approve.focus()
        page.keyboard.press("Enter")
        page.get_by_role("dialog").get_by_label("What you looked at").fill(f"the units, {count} of us")
        page.keyboard.press("Enter")
        expect(starter.locator("#rollout-approvals")).to_contain_text(f"the units, {count} of us", timeout=WAIT_MS)
    for page in (starter, bea, cy):
        expect(page.locator("#rollout-header")).to_contain_text("Healthy", timeout=WAIT_MS)
        assert page.evaluate("window.stayed") is True
    answered_by(platform, "linear", NEW)
    desk.look(starter, "approval-through")
