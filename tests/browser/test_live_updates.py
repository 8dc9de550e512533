"""Pages that lose the server: they say so, come back by themselves, and miss nothing of what happened meanwhile."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.signals import request_started
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.fixtures import Settings

from deployments.models import Rollout
from deployments.services import rollout_abort
from tests import scenes
from tests.browser.serving import Running

pytestmark = pytest.mark.browser

_WORDS = """() => {
  const spoken = document.getElementById("announcer").textContent;
  return document.querySelector("main").innerText.split("\\n").filter((line) => line.trim() !== spoken).join("\\n");
}"""
_BEFORE_PLOTS = re.compile("^The .* is on its way.$")
"""What an element says before it draws."""


@pytest.fixture
def rollout(page: Page) -> Rollout:
    """Give a rollout at its first step; `page` has signed in."""
    return scenes.rollout(scenes.service())


@pytest.fixture
def tabs(context: BrowserContext, page: Page, rollout: Rollout) -> list[Page]:
    """Give Home, the service and its rollout, each in a tab that is live."""
    addresses = ("/", "/services/default/digits/", f"/services/default/digits/rollouts/{rollout.pk}/")
    found = []
    page.goto("about:blank")
    for address in addresses:
        tab = context.new_page()
        tab.goto(address)
        expect(tab.locator("live-stream")).to_have_text("Live")
        tab.evaluate("window.stayed = true")
        found.append(tab)
    return found


def much_happens(rollout: Rollout) -> None:
    """Go on to the second step, and end by a person's decision."""
    scenes.move(rollout, step_index=1, reason_message="waiting for 40 more requests")
    rollout_abort(rollout_id=rollout.pk, actor="alice", now=timezone.now(), comment="wrong labels")


def is_as_if_loaded_now(tab: Page) -> None:
    """Check that the page was not loaded anew, and that loading it anew changes nothing."""
    expect(tab.locator("live-stream")).to_have_text("Live")
    expect(tab.locator("main")).to_contain_text("wrong labels")
    assert tab.evaluate("window.stayed") is True
    expect(tab.get_by_text(_BEFORE_PLOTS)).to_have_count(0)
    kept = told(tab)
    tab.reload()
    expect(tab.locator("live-stream")).to_have_text("Live")
    expect(tab.get_by_text(_BEFORE_PLOTS)).to_have_count(0)
    assert kept == told(tab)


def told(tab: Page) -> list[str]:
    """Return what the page says, but for how long ago something was."""
    words = re.sub(r"\d+ (second|minute)s? ago|a moment ago|\d+m? ?\d*s", "", tab.evaluate(_WORDS))
    return [line.strip() for line in words.splitlines() if line.strip()]


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """Give a list that grows with the `Last-Event-ID` of each stream that the server is asked for, empty for none."""
    found: list[str] = []

    def note(scope: dict[str, Any], **_: object) -> None:
        if scope["path"].endswith("/stream"):
            found.append(dict(scope["headers"]).get(b"last-event-id", b"").decode())

    request_started.connect(note, weak=False)
    yield found
    request_started.disconnect(note)


def test_offline_for_a_while_the_pages_say_so_and_then_show_what_happened(
    tabs: list[Page], context: BrowserContext, running: Running, rollout: Rollout, complaints: list[str]
) -> None:
    context.set_offline(True)
    running.cut()  # the browser goes on to read from a connection that it has
    for tab in tabs:
        expect(tab.locator("live-stream")).to_contain_text("Not live: this is how it was")
        expect(tab.locator("body[data-stale]")).to_be_attached()
    much_happens(rollout)
    assert "wrong labels" not in "".join(tab.evaluate(_WORDS) for tab in tabs)

    context.set_offline(False)
    for tab in tabs:
        is_as_if_loaded_now(tab)
        expect(tab.locator("body[data-stale]")).to_have_count(0)
    assert all("ERR_" in text for text in complaints)
    complaints.clear()


def test_a_connection_that_is_cut_goes_on_where_it_was(
    tabs: list[Page], running: Running, rollout: Rollout, complaints: list[str], asked: list[str]
) -> None:
    scenes.move(rollout, step_index=1, reason_message="seen before the cut")
    for tab in tabs:
        expect(tab.locator("main")).to_contain_text("Seen before the cut")
    asked.clear()
    running.cut()
    much_happens(rollout)

    for tab in tabs:
        expect(tab.locator("main")).to_contain_text("wrong labels")
    assert len(asked) == len(tabs)
    assert all(re.fullmatch(r"\d+", each) for each in asked), "each page says what it has seen"
    for tab in tabs:
        is_as_if_loaded_now(tab)
    assert all("ERR_" in text for text in complaints)
    complaints.clear()


def test_a_server_that_is_started_again_is_found_again(
    tabs: list[Page], running: Running, rollout: Rollout, complaints: list[str]
) -> None:
    running.stop()
    much_happens(rollout)
    for tab in tabs:
        expect(tab.locator("live-stream")).to_contain_text("Not live")
    running.start()
    for tab in tabs:
        is_as_if_loaded_now(tab)
    assert all("ERR_" in text for text in complaints)
    complaints.clear()


def test_a_page_more_than_allowed_says_so_and_is_live_again_when_one_is_closed(
    tabs: list[Page], context: BrowserContext, settings: Settings, complaints: list[str]
) -> None:
    settings.STREAMS_PER_TOKEN = len(tabs)
    further = context.new_page()
    further.clock.install()
    further.goto("/services/")
    expect(further.locator("live-stream")).to_have_text("Not live: too many live pages are open. Close some")
    tabs.pop().close()
    further.clock.run_for(31_000)
    expect(further.locator("live-stream")).to_have_text("Live")
    assert all("429" in text for text in complaints)
    complaints.clear()
