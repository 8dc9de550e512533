"""A real Chromium, and the folder of its pictures: fixtures for all tests that open pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.serving import DEADLINE_S
from tests.browser.states import gallery
from tests.servers.parts import MissingPartError, skip_or_fail

CHROMIUM = (Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium"))
"""The first that is there: the shell is the same engine without the windows, tabs and menus that nobody sees here."""
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
expect.set_options(timeout=DEADLINE_S * 1000)


def require_chromium() -> str:
    """Return its path; without one, skip with a way to get it, or fail where everything is required."""
    found = next((path for path in CHROMIUM if path.is_file()), None)
    if found is None:
        skip_or_fail(MissingPartError(f"{CHROMIUM[-1]} is not there; `make deps` installs the Debian package chromium"))
    return str(found)


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
def screenshots() -> Path:
    """Return the folder of what the pages look like, kept after the tests."""
    return gallery.folder()
