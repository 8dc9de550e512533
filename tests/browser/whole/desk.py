"""People at their browsers before a whole platform."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.browser.axe import violations
from tests.browser.whole.driven import Driven, is_console_echo
from tests.e2e.harness import Platform

WAIT_MS = 120_000
"""How long real processes may take on a busy machine."""


class Desk:
    """Browsers in front of one platform, and what they saw.

    Attributes:
        driven: the pages and actions of all of them.
        complaints: what their consoles said; nothing is wanted there.
    """

    def __init__(self, browser: Browser, platform: Platform, pictures: Path) -> None:
        self.driven = Driven()
        self.complaints: list[str] = []
        self._browser, self._platform, self._pictures = browser, platform, pictures
        self._contexts: list[BrowserContext] = []

    def page(self, token: str = "") -> Page:
        """Return a page of a browser of its own, signed in by a token: the platform's first admin's, or another's."""
        context = self._browser.new_context(base_url=self._platform.url, viewport={"width": 1280, "height": 900})
        self._contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        context.on("response", self.driven.saw)
        context.on("console", self._said)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        page = context.new_page()
        page.on("download", self.driven.took)
        page.goto(f"/signin/#token={token or (self._platform.home / 'token').read_text().strip()}")
        page.wait_for_url(re.compile(r"://[^/]+/$"))
        return page

    def look(self, page: Page, name: str) -> None:
        """Keep a picture, and see that anybody can use the page."""
        page.screenshot(path=self._pictures / f"whole-{name}.png", full_page=True)
        assert not (found := violations(page)), f"{name}: {found}"

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not is_console_echo(message.text):
            self.complaints.append(message.text)


def ask(page: Page, button: str, answer: str, fields: Mapping[str, str] | None = None) -> None:
    """Press a button that asks, fill the question's fields by label, and give the answer."""
    page.get_by_role("button", name=button).click()
    question = page.get_by_role("dialog")
    for label, text in (fields or {}).items():
        question.get_by_label(label).fill(text)
    question.get_by_role("button", name=answer, exact=True).click()


def see(page: Page, words: str | re.Pattern[str]) -> None:
    """Wait until the page shows these words."""
    expect(page.get_by_text(words).first).to_be_visible(timeout=WAIT_MS)


@pytest.fixture
def desk(browser: Browser, platform: Platform, screenshots: Path, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """Browsers for one test; it ends well only if all was driven that the test's mark `drives` names."""
    made = Desk(browser, platform, screenshots)
    yield made
    made.close()
    marks = [name for mark in request.node.iter_markers("drives") for name in mark.args]
    assert made.complaints == []
    assert made.driven.lacks(marks) == set()
