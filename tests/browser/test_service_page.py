"""The page of one service as people see and use it: its traffic, what it costs."""

import re
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect

from accounts.domain.scopes import Scope
from deployments.domain.phases import Code, Phase
from deployments.models import Rollout
from deployments.services import service_stop
from deployments.web.services import log_views
from integrations.clusters.base import Observed, ObservedReplica, ObservedRevision, ReplicaPhase
from tests import scenes
from tests.browser._support.axes import note_labels, time_labels
from tests.browser.axe import violations
from tests.browser.states.of_home import WAVE
from tests.browser.states.of_services import canary_traffic
from tests.deployments._support.fakes import FakeCluster

pytestmark = pytest.mark.browser

DETAIL = "/services/default/digits/"
PAUSED = {"phase": Phase.PAUSED, "reason_code": Code.PAUSED_BY_STEP, "reason_message": "step 2 asks for a person"}


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> None:
    yield
    assert complaints == []


def test_traffic_is_drawn_by_revision_told_in_words_and_walked_through_with_the_keyboard(page: Page) -> None:
    service = scenes.service()
    scenes.traffic(service, *WAVE * 8)
    scenes.rollout(service, step_index=1)
    canary_traffic(service)
    page.goto(DETAIL)
    requests = page.locator("traffic-plot[data-measure=per_second]")
    drawing, readout = requests.locator(".drawing"), requests.locator(".readout")
    expect(page.locator("traffic-plot canvas")).to_have_count(4)
    expect(readout).to_have_text(re.compile(r"^(a moment ago|\d+ seconds ago) · stable 30/s · canary 7\.47/s$"))
    expect(drawing).to_have_attribute("aria-label", re.compile(r"^Requests per second over time\. "))
    height = requests.bounding_box()["height"]

    drawing.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(readout).to_contain_text("stable 28/s")
    errors = page.locator("traffic-plot[data-measure=error_percent] .readout")
    expect(errors).to_contain_text(re.compile(r"stable 0\s% · canary 3\.\d+\s%"))
    assert requests.bounding_box()["height"] == height, "nothing jumps"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("looks", [3, 7, 12, 40, 120])
def test_no_two_labels_of_a_time_axis_are_alike(page: Page, looks: int, width: int) -> None:
    scenes.traffic(scenes.service(), *(WAVE * 10)[:looks])
    note_labels(page)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(DETAIL)
    canvas = page.locator("traffic-plot[data-measure=per_second] canvas")
    expect(canvas).to_be_visible()
    labels = time_labels(canvas)
    assert labels[-1] == "now"
    assert len(set(labels)) == len(labels) > 1, labels


def test_a_new_service_says_when_its_first_numbers_come(page: Page) -> None:
    scenes.service()
    page.goto(DETAIL)
    expect(page.locator("traffic-plot .readout").first).to_have_text(
        "Nothing yet: the first numbers come half a minute after it is live."
    )
    expect(page.locator("#service-header")).to_contain_text("No replica was seen in the last hour")


def test_the_drawings_of_a_stopped_service_end_in_a_gap_and_say_why(page: Page) -> None:
    scenes.traffic(scenes.service(), *WAVE * 4, until=timezone.now() - timedelta(minutes=4))
    service_stop(namespace="default", name="digits", actor="alice", now=timezone.now())
    page.goto(DETAIL)
    replicas = page.locator("traffic-plot[data-measure=replicas]")
    drawing, readout = replicas.locator(".drawing"), replicas.locator(".readout")
    expect(readout).to_have_text(re.compile(r" · it is stopped, nothing serves$"))
    drawing.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(readout).to_have_text(re.compile(r"^4 minutes ago · stable 1$"))


def test_a_service_that_was_stopped_long_ago_does_not_speak_of_its_first_numbers(page: Page) -> None:
    scenes.service()
    service_stop(namespace="default", name="digits", actor="alice", now=timezone.now())
    page.goto(DETAIL)
    expect(page.locator("traffic-plot .readout").first).to_have_text("It is stopped: nothing served in the last hour.")
    expect(page.locator("#open-try")).to_have_count(0)


def test_an_administrator_sets_a_price_and_the_service_says_what_its_inferences_cost(context: BrowserContext) -> None:
    scenes.traffic(scenes.service(), *[100.0] * 20)
    page = context.new_page()
    page.goto(f"/signin/#token={scenes.token(Scope.ADMIN, 'alice')}")
    page.wait_for_url(re.compile(r"://[^/]+/$"))
    page.goto("/platform/clusters/local/")
    page.get_by_test_id("no-prices").click()
    page.get_by_label("Currency").fill("EUR")
    page.get_by_label("Replica without a GPU").fill("0.6")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The prices are set.")).to_be_visible()
    expect(page.get_by_text("by the hour, in EUR")).to_be_visible()

    page.goto(DETAIL)
    cost = page.locator("#service-header dd", has_text="EUR")
    expect(cost).to_have_text(re.compile(r"^0\.0017\sEUR$"))
    expect(cost).to_have_attribute("title", re.compile("The last hour: 0.0833 h of replica at 0.6 EUR, for 30,000"))


def test_the_way_back_asks_once_and_names_the_revision(page: Page) -> None:
    row = scenes.promoted(scenes.service())
    page.goto(DETAIL)
    page.get_by_role("button", name="Roll back to digits-00001, version 1…").focus()
    page.keyboard.press("Enter")
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Roll back to digits-00001 (version 1)?")
    page.keyboard.press("Escape")
    expect(question).to_be_hidden()
    assert Rollout.objects.latest("id") == row

    page.keyboard.press("Enter")
    question.get_by_role("button", name="Roll back", exact=True).click()
    expect(page.locator("#rollout-head")).to_contain_text("version 2 → 1")
    expect(page.locator("#events")).to_contain_text("digits-00001")
    assert Rollout.objects.latest("id").to_revision.name == "digits-00001"


def test_a_service_is_stopped_and_deleted_after_a_question_that_names_it(page: Page) -> None:
    scenes.service()
    page.goto(DETAIL)
    manage, question = page.locator("#manage"), page.get_by_role("dialog")
    manage.get_by_role("button", name="Stop…").focus()
    page.keyboard.press("Enter")
    expect(question).to_contain_text("Stop default/digits?")
    page.keyboard.press("Escape")
    expect(question).to_be_hidden()
    expect(manage.get_by_role("button", name="Stop…")).to_be_focused()

    page.keyboard.press("Enter")
    question.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator("#notices")).to_contain_text("default/digits is stopped")
    expect(manage.get_by_role("button", name="Resume…")).to_be_visible()
    assert violations(page) == []

    manage.get_by_role("button", name="Delete…").click()
    expect(question).to_contain_text("Delete default/digits?")
    assert violations(page) == []
    question.get_by_role("button", name="Delete", exact=True).click()
    page.wait_for_url("**/services/")
    expect(page.locator("#notices")).to_contain_text("default/digits is being drained")
    expect(page.locator("#services")).to_contain_text("Deleting")


def test_the_last_lines_of_a_replica_unfold_in_place(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    service = scenes.service()
    scenes.replicas(service)
    replica = ObservedReplica("digits-00001-0", ReplicaPhase.READY)
    seen = Observed("default", "digits", 1, (ObservedRevision("digits-00001", 100, (replica,)),))
    monkeypatch.setattr(log_views, "driver_now", lambda *_: FakeCluster(observed={("default", "digits"): seen}))
    page.goto(DETAIL)
    expect(page.locator("#replicas")).to_contain_text("It ended with exit code 1")
    page.locator("#log-digits-00001-0 summary").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#log-digits-00001-0 pre")).to_contain_text("digits-00001-0 serves")

    with transaction.atomic():  # seen between the two, the page would have no replica whose lines are unfolded
        scenes.failure(service, "digits-00001")
        scenes.replicas(service)
    expect(page.locator("#failure-digits-00001")).to_be_visible()
    expect(page.locator("#log-digits-00001-0 pre")).to_contain_text("digits-00001-0 serves")
    assert violations(page) == []
