"""The list of services as people see and use it."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from deployments.reconcile.participants import traffic
from tests import scenes

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
    expect(page.get_by_role("heading", name="No services match")).to_be_visible()
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
    expect(page.get_by_text("1 to 50 of 1,000+")).to_be_visible()

    page.get_by_role("link", name="Later").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/services/?page=2")
    expect(page.get_by_text("51 to 100 of 1,000+")).to_be_visible()
    page.goto("/services/?q=copy-0999&page=1")
    expect(page.locator("#services tbody tr")).to_have_count(10)
    expect(page.locator("live-stream")).to_have_text("Live")
