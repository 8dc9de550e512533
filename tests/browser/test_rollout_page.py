"""The page of one rollout as people see and use it."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from deployments.domain.phases import Code, Phase
from deployments.models import AnalysisRun, Rollout
from deployments.services import rollout_abort
from events.models import Event
from tests import measuring, scenes
from tests.browser._support.axes import note_labels, time_labels

pytestmark = pytest.mark.browser

PAUSED = {"phase": Phase.PAUSED, "reason_code": Code.PAUSED_BY_STEP, "reason_message": "step 2 asks for a person"}


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> None:
    yield
    assert complaints == []


def address(row: Rollout) -> str:
    return f"/services/default/{row.service.name}/rollouts/{row.pk}/"


def test_it_is_reached_from_the_service_and_follows_without_a_reload(page: Page) -> None:
    row = scenes.rollout(scenes.service())
    page.goto("/services/default/digits/")
    page.get_by_role("link", name=f"Open rollout {row.pk}").click()
    page.wait_for_url(f"**{address(row)}")
    page.evaluate("window.stayed = true")

    scenes.move(row, step_index=1, reason_message="waiting for 40 more requests")
    expect(page.get_by_text("Waiting for 40 more requests")).to_be_visible()
    now = page.locator(".track [aria-current=step]")
    expect(now).to_contain_text("25 %")
    expect(now.locator("step-clock")).to_contain_text(re.compile(r"of the hold left|hold is over"))
    rollout_abort(rollout_id=row.pk, actor="alice", now=timezone.now(), comment="wrong labels")
    expect(page.locator("#rollout-why")).to_contain_text("wrong labels")
    expect(page.get_by_role("button", name="Retry…")).to_be_visible()

    assert page.evaluate("window.stayed") is True


def test_a_pause_is_left_with_the_keyboard_alone_and_a_reason(page: Page) -> None:
    row = scenes.rollout(scenes.service())
    scenes.move(row, step_index=1, **PAUSED)
    page.goto(address(row))

    page.get_by_role("button", name="Promote…").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Send 50 % of the requests to version 2?")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert Rollout.objects.get().phase == Phase.PAUSED

    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_label("Why").focus()
    page.keyboard.type("looked at 50 pictures")
    page.keyboard.press("Enter")

    expect(page.locator("#rollout-header")).to_contain_text("Progressing")
    expect(page.locator("#events")).to_contain_text("looked at 50 pictures")
    assert Event.objects.filter(kind="RolloutCommented").count() == 1


def test_a_page_that_hears_nothing_says_that_it_is_old_and_since_when_and_recovers(
    page: Page, complaints: list[str]
) -> None:
    row = scenes.rollout(scenes.service())
    page.clock.install()

    def refuse(route: Route) -> None:
        route.abort()

    page.route("**/stream*", refuse)
    page.goto(address(row))
    expect(page.get_by_text("Reconnecting")).to_be_visible()
    page.clock.run_for(75_000)

    old = re.compile(r"Not live: this is how it was [12]m \d\ds ago. Reconnecting")
    expect(page.locator("live-stream")).to_have_text(old)
    expect(page.locator("body[data-stale]")).to_be_attached()
    expect(page.locator("#announcer")).to_have_text("The page is not live any more")

    page.unroute("**/stream*", refuse)
    scenes.move(row, step_index=1, reason_message="what happened meanwhile")
    page.clock.run_for(5000)
    expect(page.get_by_text("What happened meanwhile")).to_be_visible()
    expect(page.locator("live-stream")).to_have_text("Live")
    expect(page.locator("body[data-stale]")).not_to_be_attached()
    assert all("ERR_FAILED" in text for text in complaints)
    complaints.clear()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("began_s_ago", [0, 5400, 90_000])
def test_no_two_labels_of_the_evidence_are_alike(page: Page, began_s_ago: int, width: int) -> None:
    row = scenes.rollout(scenes.service())
    scenes.move(row, step_index=1)
    row.refresh_from_db()
    measuring.measure(row, looks=90, canary_errors=0.001)
    began = row.confirmed_at - timedelta(seconds=began_s_ago)
    assert AnalysisRun.objects.filter(rollout=row, step_index=0).update(started_at=began) == 1
    note_labels(page)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address(row))
    canvas = page.locator("evidence-plot[data-metric=server_errors] canvas").last
    expect(canvas).to_be_visible()
    labels = time_labels(canvas)
    assert len(set(labels)) == len(labels) > 1, labels


def test_the_evidence_is_drawn_told_in_words_and_walked_through_with_the_keyboard(page: Page) -> None:
    row = scenes.rollout(scenes.service())
    measuring.measure(row, looks=30, canary_errors=0.02)
    page.goto(address(row))
    plot = page.locator("evidence-plot[data-metric=server_errors]")
    drawing, readout = plot.locator(".drawing"), plot.locator(".readout")
    expect(plot.locator("canvas")).to_have_count(2)
    expect(readout).to_contain_text(re.compile(r"^1m 00s, step 1 · canary 1.94\s% \(surely .* limit 1\s%.* n = 360$"))
    expect(drawing).to_have_attribute("aria-label", re.compile(r"^Server errors over time\. 1m 00s"))
    height = plot.bounding_box()["height"]

    drawing.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(readout).to_contain_text(re.compile(r"^58s, .* n = 348$"))
    page.evaluate("document.querySelector('evidence-plot canvas').dataset.same = 'yes'")
    measuring.measure(row, looks=60, canary_errors=0.02)
    expect(plot.locator("xpath=..")).to_contain_text("14 of 720 requests")

    expect(plot.locator("canvas[data-same=yes]")).to_be_attached()
    assert plot.bounding_box()["height"] == height, "nothing jumps"
