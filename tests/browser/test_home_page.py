"""Home as people see and use it."""

from pathlib import Path
from typing import Literal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from deployments.models import Cluster, Rollout
from deployments.phases import Code, Phase
from deployments.recording import changing
from tests import scenes
from tests.browser.axe import violations

pytestmark = pytest.mark.browser

PAUSED = {"phase": Phase.PAUSED, "reason_code": Code.PAUSED_BY_STEP, "reason_message": "step 2 asks for a person"}


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> None:
    yield
    assert complaints == []


def test_it_follows_a_rollout_from_nothing_to_its_end_without_a_reload(page: Page) -> None:
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    expect(page.get_by_text("Three steps lead there")).to_be_visible()
    page.evaluate("window.stayed = true")

    row = scenes.rollout(scenes.service())
    rolling, waiting = page.locator("#home-rolling"), page.locator("#home-waiting")
    expect(rolling).to_contain_text("Step 1 of 3, 10 %")
    expect(page.locator("#home-live")).to_contain_text("digits")
    expect(page.locator("#home-lately")).to_contain_text("was created by test")
    scenes.move(row, step_index=1, **PAUSED)
    expect(waiting).to_contain_text("Step 2 asks for a person")
    expect(page.locator("#announcer")).to_have_text("1 rollout waits for you")
    expect(page.locator("#home-figures li").first).to_have_text("1 waits for you")
    expect(rolling).to_contain_text("No other rollout is on its way.")

    assert page.evaluate("window.stayed") is True


def test_what_waits_is_decided_with_the_keyboard_and_the_back_button_leads_home(page: Page) -> None:
    scenes.move(scenes.rollout(scenes.service()), step_index=1, **PAUSED)
    page.goto("/")

    page.get_by_role("link", name="Promote or abort digits").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Promote…").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_label("Why").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#rollout-header")).to_contain_text("Progressing")
    assert Rollout.objects.get().phase == Phase.PROGRESSING

    page.go_back()
    expect(page.locator("#home-rolling")).to_contain_text("digits")
    expect(page.locator("#home-waiting")).to_contain_text("Nothing.")


def test_a_figure_leads_to_its_list_and_the_address_keeps_it(page: Page) -> None:
    for number in range(6):
        scenes.rollout(scenes.service(f"service-{number}"))
    page.set_viewport_size({"width": 390, "height": 600})
    page.goto("/")
    page.get_by_role("link", name="6 live").click()

    expect(page.get_by_role("heading", name="Live", exact=True)).to_be_in_viewport()
    assert page.url.endswith("/#home-live")


def test_it_says_when_what_it_shows_is_old(page: Page, complaints: list[str]) -> None:
    scenes.service()
    page.clock.install()

    def refuse(route: Route) -> None:
        route.abort()

    page.route("**/stream*", refuse)
    page.goto("/")
    expect(page.get_by_text("Reconnecting")).to_be_visible()
    page.clock.run_for(75_000)
    expect(page.locator("live-stream")).to_contain_text("Not live: this is how it was")
    page.close()  # the stream would try, and complain, again
    assert all("ERR_FAILED" in text for text in complaints)
    complaints.clear()


def _none_yet() -> None:
    """Nothing was done here yet."""


def _quiet() -> None:
    for name in ("digits", "ranker", "question-similarity"):
        scenes.service(name)


def _busy() -> None:
    _quiet()
    long = scenes.service("as-long-a-name-as-a-service-can-have-" + "x" * 20)
    scenes.move(scenes.rollout(long), step_index=1, **PAUSED)
    scenes.move(scenes.rollout(scenes.service("scorer")), step_index=1, **PAUSED)
    scenes.rollout(scenes.service("detector"), step_index=1)
    failed = scenes.rollout(scenes.service("segmenter"), version=3)
    why = "the canary fails 4.1 % of its requests (37 of 902), and the limit is 1 %"
    fields = {"phase": Phase.DEGRADED, "reason_code": Code.ANALYSIS_FAILED, "reason_message": why}
    Rollout.objects.filter(pk=failed.pk).update(finished_at=timezone.now(), **fields)
    sick = scenes.service("sick")
    with changing(sick.pk, now=timezone.now()) as change:
        change.service.phase, change.service.reason = "Degraded", "no replica of sick-00001 is ready"
        change.service.standing = "ReplicasNotReady"
    Cluster.objects.create(
        name="edge",
        kind="kubernetes",
        problem="https://edge.example:6443 did not answer within 5 s",
        silent_since=timezone.now(),
        created_at=timezone.now(),
    )


STATES = {"none-yet": _none_yet, "quiet": _quiet, "busy": _busy}


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_every_state_fits_every_screen_and_is_accessible(
    page: Page, state: str, colours: Literal["light", "dark"], screenshots: Path
) -> None:
    STATES[state]()
    page.emulate_media(color_scheme=colours)
    page.goto("/")
    expect(page.locator("live-stream")).to_have_text("Live")

    for width in (390, 768, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
        assert violations(page) == [], width
        page.screenshot(path=str(screenshots / f"home-{state}-{width}-{colours}.png"), full_page=True)


def test_ten_thousand_services_are_counted_and_not_listed(page: Page) -> None:
    scenes.copies(scenes.service(), 10_000)

    page.goto("/")

    expect(page.get_by_role("link", name="All 10,001 services")).to_be_visible()
    expect(page.locator("#home-live tbody tr")).to_have_count(8)
    expect(page.locator("live-stream")).to_have_text("Live")
