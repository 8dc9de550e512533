"""The pages by keyboard alone: one always sees where one is, and goes on from there after a question."""

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from deployments.domain.phases import Phase
from deployments.models import Rollout
from deployments.services import rollout_abort
from tests import scenes
from tests.browser.states.of_home import PAUSED

pytestmark = pytest.mark.browser

_WHERE = "() => document.activeElement.id || document.activeElement.tagName"
_IS_SEEN = """() => {
  const isMarked = (element) => {
    const style = getComputedStyle(element);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  };
  const at = document.activeElement;
  const box = at.getBoundingClientRect();
  const isOnScreen = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return isOnScreen && (isMarked(at) || [...at.labels ?? []].some(isMarked));
}"""


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> None:
    yield
    assert complaints == []


def paused() -> Rollout:
    row = scenes.rollout(scenes.service())
    scenes.move(row, step_index=1, **PAUSED)
    return row


def address(row: Rollout) -> str:
    return f"/services/default/digits/rollouts/{row.pk}/"


def test_the_first_key_skips_the_head_of_the_page(page: Page) -> None:
    page.goto("/services/")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport(ratio=1)
    page.keyboard.press("Enter")
    assert page.evaluate(_WHERE) == "content"
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


@pytest.mark.parametrize(
    "path", ["/", "/services/", "/services/default/digits/", "/models/", "/models/digits/versions/1/", "/policies/new"]
)
def test_every_stop_of_the_keyboard_is_seen(page: Page, path: str) -> None:
    paused()
    page.goto(path)
    page.mouse.move(0, 0)
    unseen, stops = [], 0
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate(_WHERE) == "BODY":
            break
        stops += 1
        if not page.evaluate(_IS_SEEN):
            unseen.append(page.evaluate("document.activeElement.outerHTML.slice(0, 120)"))
    assert stops > 10
    assert unseen == []


@pytest.mark.parametrize("leave", ["Escape", "Enter"])
def test_a_question_takes_the_focus_and_gives_it_back(page: Page, leave: str) -> None:
    page.goto(address(paused()))
    page.get_by_role("button", name="Promote…").focus()
    page.keyboard.press("Enter")
    question = page.get_by_role("dialog")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(question.get_by_label("Why")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press(leave)
    expect(question).to_be_hidden()
    expect(page.get_by_role("button", name="Promote…")).to_be_focused()
    assert page.evaluate(_IS_SEEN)


def test_after_a_decision_the_keyboard_goes_on_where_it_was_made(page: Page) -> None:
    row = paused()
    page.goto(address(row))
    page.get_by_role("button", name="Abort…").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("dialog").get_by_role("button", name="Abort")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#rollout-header")).to_contain_text("Aborted")
    expect(page.locator("#rollout-header")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Retry…")).to_be_focused()
    assert Rollout.objects.get().phase == Phase.ABORTED


def test_a_decision_that_came_too_late_gives_the_focus_back_and_the_notice_is_in_sight(
    page: Page, complaints: list[str]
) -> None:
    row = paused()
    page.route("**/stream*", lambda route: route.abort())
    page.set_viewport_size({"width": 390, "height": 600})
    page.goto(address(row))
    page.get_by_role("button", name="Abort…").focus()
    page.keyboard.press("Enter")
    rollout_abort(rollout_id=row.pk, actor="alice", now=timezone.now())
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#notices .notice")).to_be_in_viewport()
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("button", name="Abort…")).to_be_focused()
    page.close()  # the stream would try, and complain, again
    assert all("409" in text or "ERR_FAILED" in text for text in complaints)
    complaints.clear()


def test_what_is_unfolded_by_keys_keeps_the_focus_when_its_part_comes_anew(page: Page) -> None:
    service = scenes.service()
    scenes.failure(service, "digits-00001", is_failing=False)
    page.goto("/services/default/digits/")
    expect(page.locator("live-stream")).to_have_text("Live")
    failure = page.locator("#failure-digits-00001")
    failure.locator("summary").focus()
    page.keyboard.press("Space")
    expect(failure).to_have_attribute("open", "")

    scenes.rollout(service)
    expect(page.locator("#revisions")).to_contain_text("digits-00002")
    expect(failure.locator("summary")).to_be_focused()
    page.keyboard.press("Space")
    expect(failure).not_to_have_attribute("open", "")


def test_what_is_typed_stays_when_its_part_comes_anew(page: Page) -> None:
    row = paused()
    page.goto(address(row))
    expect(page.locator("live-stream")).to_have_text("Live")
    page.get_by_role("button", name="Abort…").press("Enter")
    why = page.get_by_role("dialog").get_by_label("Why")
    why.fill("the labels")
    why.press("Home")

    scenes.move(row, step_index=2)
    expect(page.locator("#rollout-header")).to_contain_text("leaves its pause at 50 %")
    expect(why).to_be_focused()
    page.keyboard.type("wrong are ")
    expect(why).to_have_value("wrong are the labels")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("wrong are the labels")


def test_a_link_deep_into_a_page_and_the_way_back_hold_after_parts_came_anew(page: Page) -> None:
    row = paused()
    page.goto("/services/?q=digits")
    page.get_by_role("link", name="digits", exact=True).press("Enter")
    page.wait_for_url("**/services/default/digits/")
    page.get_by_role("button", name="Promote…").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Promote").press("Enter")
    expect(page.locator("#rollout-head")).to_contain_text("Progressing")
    page.get_by_role("link", name=f"Open rollout {row.pk}").press("Enter")
    page.wait_for_url(f"**{address(row)}")
    page.go_back()
    expect(page.locator("#rollout-head")).to_contain_text("Progressing")
    page.go_back()
    expect(page.get_by_role("searchbox")).to_have_value("digits")
    page.go_forward()
    expect(page.locator("#rollout-head")).to_contain_text("Progressing")
    page.goto("/services/default/digits/#revisions")
    expect(page.get_by_role("heading", name="Revisions", exact=True)).to_be_in_viewport()
