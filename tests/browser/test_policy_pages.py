"""The editor of policies, as a person uses it: the steps are drawn while one types."""

import re
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from deployments.models import RolloutPolicy
from deployments.services import policy_apply
from tests import scenes
from tests.browser.axe import violations

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> None:
    yield
    assert complaints == []


def test_steps_are_drawn_as_one_types_and_what_is_wrong_is_told_at_its_line(page: Page) -> None:
    page.goto("/platform/")
    page.get_by_role("link", name="Rollout policies").click()
    page.get_by_role("link", name="New policy").click()
    drawing, text = page.locator("#policy-drawing"), page.get_by_role("textbox", name="The policy file as YAML")
    expect(drawing).to_contain_text("Takes 15m, longer by 2 analyses, 1 pause for people")
    text.press("Control+End")
    text.press_sequentially("- weight: 75\n  hold: ten\n")
    expect(drawing).to_contain_text("Line 12: ")
    expect(drawing.locator("mark")).to_have_text("  hold: ten")
    for _ in range(4):
        page.keyboard.press("Backspace")
    text.press_sequentially("1h\n")
    expect(drawing.locator(".track strong")).to_have_text(["10 %", "50 %", "75 %", "Live"])
    expect(drawing).to_contain_text("Takes 1h15m")
    page.get_by_role("button", name="Save policy").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Policy careful is there now.")).to_be_visible()
    assert [step["weight"] for step in RolloutPolicy.objects.get().document["steps"]] == [10, 50, 75]

    page.get_by_role("button", name="Delete policy…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete policy").click()
    expect(page.get_by_test_id("no-policy")).to_be_visible()


def test_the_form_and_the_file_follow_each_other_by_keyboard(page: Page) -> None:
    page.goto("/policies/new")
    text, drawing = page.get_by_role("textbox", name="The policy file as YAML"), page.locator("#policy-drawing")
    name = page.get_by_label("Name", exact=True)
    name.fill("by-form")
    expect(text).to_have_value(re.compile(r"^name: by-form\n"))
    page.get_by_label("Stay for").first.fill("20m")
    expect(drawing).to_contain_text("Takes 30m")
    expect(text).to_have_value(re.compile("hold: 20m"))

    page.get_by_role("button", name="Add a step").focus()
    page.keyboard.press("Enter")
    weights = page.get_by_label("Requests, %", exact=True)
    expect(weights).to_have_count(3)
    expect(drawing.locator(".track strong")).to_have_text(["10 %", "50 %", "75 %", "Live"])
    then = page.get_by_role("group", name="Step 3").get_by_label("Then", exact=True)
    then.focus()
    then.select_option("approvals")
    expect(page.get_by_label("An approval counts for")).to_be_visible()
    expect(then).to_be_focused()
    expect(drawing).to_contain_text("then 1 approval")

    text.fill(text.input_value().replace("weight: 75", "weight: 80").replace("approvals: 1", "approvals: 2"))
    expect(weights.last).to_have_value("80")
    expect(page.get_by_label("Approvals", exact=True)).to_have_value("2")
    text.fill(text.input_value() + "alpha: 0.05\n")
    expect(page.locator("#policy-form")).to_contain_text("Also in the file, kept unchanged: alpha")
    page.get_by_role("button", name="Add a Prometheus metric to step 3").click()
    page.get_by_label("Prometheus query").fill("max(age_seconds)")
    expect(text).to_have_value(re.compile(r"query: max\(age_seconds\)"))
    page.get_by_role("button", name="Remove step 1").click()
    expect(weights).to_have_count(2)
    weights.first.fill("30")
    page.get_by_role("button", name="Save policy").click()
    expect(page.get_by_text("Policy by-form is there now.")).to_be_visible()
    document = RolloutPolicy.objects.get().document
    assert [step["weight"] for step in document["steps"]] == [30, 80]
    assert (document["alpha"], document["steps"][1]["pause"]["approvals"]) == (0.05, 2)
    assert document["steps"][1]["analysis"]["metrics"][0]["query"] == "max(age_seconds)"


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_pages_fit_and_can_be_used_by_everybody(page: Page, screenshots: Path, width: int, colours: str) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=colours)  # type: ignore[arg-type]

    def look(name: str) -> None:
        page.screenshot(path=screenshots / f"policy-{name}-{width}-{colours}.png", full_page=True)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    page.goto("/policies/")
    look("empty")
    policy_apply(document=scenes.POLICY, name=None, actor="test", now=timezone.now())
    page.reload()
    look("list")
    page.goto("/policies/careful/")
    look("busy")
    page.get_by_role("textbox", name="The policy file as YAML").fill("name: careful\nsteps:\n- weight: 101\n")
    expect(page.locator("#policy-drawing mark")).to_be_visible()
    look("error")
