"""The editor of policies, as a person uses it: the steps are drawn while one types."""

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
    drawing, text = page.locator("#policy-drawing"), page.get_by_role("textbox")
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
    expect(page.get_by_text("No policy yet.")).to_be_visible()


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
    page.get_by_role("textbox").fill("name: careful\nsteps:\n- weight: 101\n")
    expect(page.locator("#policy-drawing mark")).to_be_visible()
    look("error")
