"""The pictures of `docs/images/`: the top of a page, light, 1280 wide; `screenshots.py` has pytest make them.

pytest does not find this file by itself: what it does is no test.
"""

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page
from pytest_django.fixtures import Settings

from tests.browser._support.sessions import sign_in
from tests.browser.states import documentation, holding
from tests.browser.states.state import Stage

pytestmark = pytest.mark.browser

IMAGES = Path(__file__).parents[2] / "docs/images"
WIDTH = 1280
MOST_BYTES = 150_000


@pytest.mark.parametrize("picture", documentation.PICTURES, ids=lambda picture: picture.name)
def test_picture(
    picture: documentation.Picture,
    context: BrowserContext,
    server: str,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    tmp_path: Path,
) -> None:
    """Make one picture; one that is too large for a page of documentation is refused."""
    settings.CLUSTER_FOLDER = tmp_path / "nothing"
    sign_in(context, server)
    address = picture.arrange(Stage(monkeypatch, settings, tmp_path))
    page: Page = context.new_page()
    page.set_viewport_size({"width": WIDTH, "height": picture.height})
    page.goto(address)
    holding.settle(page, is_live=True)
    picture.act(page)
    file = IMAGES / f"{picture.name}.png"
    page.screenshot(path=file, animations="disabled")
    assert file.stat().st_size < MOST_BYTES, f"{file.name} has {file.stat().st_size} bytes; make it lower"
