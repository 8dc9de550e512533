"""A real Chromium against a real server: the ASGI application under uvicorn, in a thread, on the test's database."""

import asyncio
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from accounts.scopes import Scope
from deployments import events
from tests import scenes
from tests.servers.parts import MissingPartError, skip_or_fail

CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DEADLINE_S = 60.0
expect.set_options(timeout=DEADLINE_S * 1000)


def require_chromium() -> str:
    """Return its path; without one, skip with a way to get it, or fail where everything is required."""
    if not CHROMIUM.is_file():
        skip_or_fail(MissingPartError(f"{CHROMIUM} is not there; `make deps` installs the Debian package chromium"))
    return str(CHROMIUM)


# Not for the session: while Playwright runs, no asynchronous test can.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = require_chromium()
    with sync_playwright() as playwright, pytest.MonkeyPatch.context() as patch:
        # Playwright's synchronous interface runs an event loop in this thread; Django would refuse the database there.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def server(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve the control plane; yields its address."""
    from fairlead.asgi import application  # noqa: PLC0415 - needs Django's settings

    monkeypatch.setattr(events, "PERIOD_S", 0.05)
    config = uvicorn.Config(application, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(running.serve([listener])), name="server")
        thread.start()
        _wait_until_started(running)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        running.should_exit = True
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def _wait_until_started(running: uvicorn.Server) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not running.started:
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.01)


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
def screenshots() -> Path:
    """Return the folder of what the pages look like, kept after the tests; `FAIRLEAD_SCREENSHOTS` names another."""
    folder = Path(os.environ.get("FAIRLEAD_SCREENSHOTS") or Path(__file__).parents[2] / "build/screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """Return a page that is signed in as one who may write."""
    page = context.new_page()
    page.goto(f"/signin/#token={scenes.token(Scope.WRITE)}")
    page.wait_for_url(re.compile(r"://[^/]+/$"))
    return page
