"""The list of services as people see and use it."""

from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from deployments import traffic
from deployments.models import InferenceService, Revision, Rollout
from deployments.phases import Code, Phase
from tests import scenes
from tests.browser.axe import violations

pytestmark = pytest.mark.browser

WAVE = [30.0, 32.0, 36.0, 41.0, 44.0, 46.0, 43.0, 39.0, 35.0, 31.0, 28.0, 30.0]


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> None:
    yield
    assert complaints == []


def test_a_search_is_typed_linked_to_and_left_by_the_back_button(page: Page) -> None:
    for name in ("ranker", "scorer", "segmenter"):
        scenes.service(name)
    page.goto("/services/")
    page.get_by_role("searchbox").focus()
    page.keyboard.type("RANK")
    page.keyboard.press("Enter")

    page.wait_for_url("**/services/?q=RANK")
    names = page.locator("#services .name")
    expect(names).to_have_text(["ranker"])
    expect(page.get_by_role("searchbox")).to_have_value("RANK")
    page.reload()
    expect(names).to_have_text(["ranker"])
    page.go_back()
    expect(names).to_have_count(3)


def test_a_narrowed_list_stays_live_and_narrow(page: Page) -> None:
    scenes.service("ranker")
    page.goto("/services/?q=segm")
    expect(page.get_by_role("heading", name="No service is like that")).to_be_visible()
    expect(page.locator("live-stream")).to_have_text("Live")
    page.evaluate("window.stayed = true")

    scenes.service("segmenter")

    expect(page.locator("#services .name")).to_have_text(["segmenter"])
    expect(page.locator("#service-phases")).to_contain_text("All 1")
    assert page.evaluate("window.stayed") is True


def test_new_traffic_comes_without_a_reload_and_nothing_jumps(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "EVERY", timedelta(seconds=1))
    service = scenes.service()
    scenes.traffic(service, 10.0, 10.0, until=timezone.now() - timedelta(seconds=1))
    page.goto("/services/")
    now = page.locator(".services .now")
    expect(now).to_have_text("10/s")
    rows = page.locator("#services tbody tr")
    height = rows.first.bounding_box()["height"]

    scenes.traffic(service, 1204.0)
    expect(now).to_have_text("1,204/s")
    assert rows.first.bounding_box()["height"] == height


def test_ten_thousand_services_are_walked_through_page_by_page(page: Page) -> None:
    scenes.copies(scenes.service(), 10_000)
    page.goto("/services/")
    expect(page.locator("#services tbody tr")).to_have_count(50)
    expect(page.get_by_text("1 to 50 of 10,001")).to_be_visible()

    page.get_by_role("link", name="Later").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/services/?page=2")
    expect(page.get_by_text("51 to 100 of 10,001")).to_be_visible()
    page.goto("/services/?q=copy-0999&page=1")
    expect(page.locator("#services tbody tr")).to_have_count(10)
    expect(page.locator("live-stream")).to_have_text("Live")


def _none_yet() -> None:
    """Nothing was done here yet."""


def _none_found() -> None:
    scenes.service("ranker")


def _busy() -> None:
    scenes.traffic(scenes.service(), *WAVE * 10)
    long = scenes.service("as-long-a-name-as-a-service-can-have-" + "x" * 20)
    scenes.traffic(long, *[1200.0 + 40 * step for step in range(60)], errors=0.013)
    paused = {"phase": Phase.PAUSED, "reason_code": Code.PAUSED_BY_STEP, "reason_message": "step 2 asks for a person"}
    scenes.move(scenes.rollout(long), step_index=1, **paused)
    ranker = scenes.service("ranker")
    placement = {"accelerator": "nvidia.com/mig-1g.10gb", "products": [], "why": "the least that holds it"}
    Revision.objects.filter(service=ranker).update(accelerator="auto", placement=placement)
    scenes.traffic(ranker, *[0.0] * 50, *[4.0, 9.0] * 15)
    done = scenes.rollout(ranker)
    Rollout.objects.filter(pk=done.pk).update(phase=Phase.HEALTHY, finished_at=timezone.now())
    scenes.service("idle")
    sick = scenes.service("sick")
    why = "0 of 1 replicas of sick-00001 are ready: runtime ended with exit code 1"
    InferenceService.objects.filter(pk=sick.pk).update(phase="Degraded", reason=why)
    scenes.traffic(sick, *[20.0] * 40, *[0.0] * 6)


STATES = {"none-yet": (_none_yet, ""), "none-found": (_none_found, "?q=nobody"), "busy": (_busy, "")}


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_every_state_fits_every_screen_and_is_accessible(
    page: Page, state: str, colours: Literal["light", "dark"], screenshots: Path
) -> None:
    arrange, query = STATES[state]
    arrange()
    page.emulate_media(color_scheme=colours)
    page.goto(f"/services/{query}")
    expect(page.locator("live-stream")).to_have_text("Live")

    for width in (390, 768, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
        cards = page.locator("#services .card")
        if cards.count():
            assert cards.first.evaluate("card => card.scrollWidth <= card.clientWidth"), f"cut off at {width}"
        assert violations(page) == [], width
        page.screenshot(path=str(screenshots / f"services-{state}-{width}-{colours}.png"), full_page=True)
