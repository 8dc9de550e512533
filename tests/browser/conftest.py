"""A real Chromium against a real server (`serving.py`)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from accounts.domain.scopes import Scope
from events.web import live_updates
from tests import scenes
from tests.browser._support.chromium import browser, screenshots
from tests.browser.serving import DEADLINE_S, Running
from tests.browser.sharing import ByPage, longest_first
from tests.registry._support.model_files import linear_model, store_folder

__all__ = ["browser", "linear_model", "screenshots", "store_folder"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Share out the tests by page; called only where the tests of this folder were asked for by name."""
    return ByPage(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, where the browser's tests are alone."""
    if all(Path(__file__).parent in item.path.parents for item in items):
        items.sort(key=longest_first)


@pytest.fixture
def running(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """Serve the control plane; the test may cut it off, end it and start it again."""
    monkeypatch.setattr(live_updates, "PERIOD_S", 0.05)
    running = Running()
    running.start()
    yield running
    running.stop()


@pytest.fixture
def server(running: Running) -> str:
    """Serve the control plane; return its address."""
    return running.address


@pytest.fixture
def complaints() -> list[str]:
    """What the browser complained of: errors on its console, refused by the Content-Security-Policy among them."""
    return []


@pytest.fixture
def context(browser: Browser, server: str, complaints: list[str]) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=server, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(DEADLINE_S * 1000)

    def listen(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(message.text)

    context.on("console", listen)
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """Return a page that is signed in as one who may write."""
    page = context.new_page()
    page.goto(f"/signin/#token={scenes.token(Scope.WRITE)}")
    page.wait_for_url(re.compile(r"://[^/]+/$"))
    return page
