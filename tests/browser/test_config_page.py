"""The page on which a service's file is changed, as people use it."""

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from deployments.models import InferenceService, Rollout
from tests import scenes
from tests.browser.axe import violations

pytestmark = pytest.mark.browser

DETAIL = "/services/default/digits/"
CONFIG = f"{DETAIL}config/"


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> None:
    yield
    assert complaints == []


def test_a_new_version_is_chosen_in_the_form_looked_at_and_applied_with_the_keyboard(page: Page) -> None:
    scenes.service()
    scenes.model_version(2)
    page.goto(DETAIL)
    page.get_by_role("link", name="Configuration").click()
    page.wait_for_url(f"**{CONFIG}")
    page.evaluate("window.stayed = true")
    page.get_by_label("Model", exact=True).fill("models:/digits/2")
    page.keyboard.press("Enter")

    plan = page.locator("#config-plan")
    expect(plan.locator("del")).to_have_text("      storageUri: models:/digits/1")
    expect(plan.locator("ins")).to_have_text("      storageUri: models:/digits/2")
    assert not Rollout.objects.exists()
    assert page.evaluate("window.stayed") is True
    page.get_by_role("button", name="Apply…").focus()
    page.keyboard.press("Enter")
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Apply this to default/digits?")
    question.get_by_role("button", name="Apply", exact=True).focus()
    page.keyboard.press("Enter")

    page.wait_for_url(f"**{DETAIL}")
    expect(page.get_by_text("Applied the file of default/digits.")).to_be_visible()
    expect(page.locator("#rollout-head")).to_contain_text("version 1 → 2")


def test_what_is_wrong_in_the_text_is_told_with_its_line_and_put_right(page: Page) -> None:
    scenes.service()
    page.goto(CONFIG)
    text = page.get_by_role("textbox", name="The service file as YAML")
    was = text.input_value()
    text.fill(was + "metadata: {}\n")
    page.get_by_role("button", name="Preview file changes").click()
    expect(page.locator("#config-plan")).to_contain_text("the field 'metadata' is there twice")

    text.fill(was.replace("predictor:\n", "predictor:\n    minReplicas: 2\n"))
    page.get_by_role("button", name="Preview file changes").click()
    expect(page.locator("#config-plan ins")).to_have_text("    minReplicas: 2")
    assert "minReplicas" not in InferenceService.objects.get().document["spec"]["predictor"]


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_it_fits_every_screen_and_is_accessible(
    page: Page, colours: Literal["light", "dark"], screenshots: Path
) -> None:
    service = scenes.service("as-long-a-name-as-a-service-can-have-" + "x" * 20)
    page.emulate_media(color_scheme=colours)
    page.goto(f"/services/default/{service.name}/config/")
    page.get_by_label("Maximum replicas").fill("4")
    page.keyboard.press("Enter")
    expect(page.locator("#config-plan ins")).to_have_text("    maxReplicas: 4")

    for width in (390, 768, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
        assert violations(page) == [], width
        page.screenshot(path=str(screenshots / f"config-{width}-{colours}.png"), full_page=True)
