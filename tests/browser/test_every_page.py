"""Every page in every state, at four widths: it fits, nothing jumps, anybody can use it; some are pictured."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from django.test import Client
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.fixtures import Settings

from control_plane.security import POLICY
from tests.browser import colours
from tests.browser._support.sessions import routes, sign_in
from tests.browser.axe import violations
from tests.browser.states import holding
from tests.browser.states.listing import NO_PAGES, PAGES, Look, looks
from tests.browser.states.pictured import Pictures
from tests.browser.states.state import KINDS, Stage

pytestmark = pytest.mark.browser

WIDE, WIDEST, MIDDLE, NARROW = 1280, 1920, 768, 390
READ_BY_AXE = {NARROW, WIDE}
HEIGHT = 900
SCREENS = 3
"""How many screens of that height are seen while a page opens."""
MOST_SHIFT = 0.02
MOST_SCRIPT_BYTES = 150_000


@pytest.mark.django_db
def test_every_address_is_a_page_of_the_list_or_known_to_be_none(settings: Settings) -> None:
    settings.ANONYMOUS_REQUESTS_PER_MINUTE = 0
    client = Client()
    readable = {name for name, path in routes() if client.get(path).status_code != 405}
    assert {"deployments:home", "registry:model-list", "accounts:signin"} <= readable
    assert readable - PAGES.keys() - NO_PAGES.keys() == set(), "add them to tests/browser/states, with their states"
    assert (PAGES.keys() | NO_PAGES.keys()) - readable == set(), "the list has what is not there any more"


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_looked_at_empty_busy_and_failing_or_says_why_not(name: str) -> None:
    page = PAGES[name]
    for kind in KINDS:
        has_one = any(state.partition("-")[0] == kind for state in page.states)
        assert has_one is not (kind in page.without), kind
    assert {state.partition("-")[0] for state in page.states} <= set(KINDS)


@pytest.fixture(scope="module")
def pictures() -> Iterator[Pictures]:
    pictures = Pictures()
    yield pictures
    pictures.finish()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path) -> Stage:
    settings.CLUSTER_FOLDER = tmp_path / "nothing"
    return Stage(monkeypatch, settings, tmp_path)


@pytest.mark.parametrize("look", list(looks()), ids=str)
def test_a_page_holds_for_everybody(
    look: Look, stage: Stage, context: BrowserContext, server: str, complaints: list[str], pictures: Pictures
) -> None:
    if look.state.scope is not None:
        sign_in(context, server, look.state.scope)
    address = look.state.arrange(stage)
    context.add_init_script(holding.WATCH)
    page = context.new_page()
    with pictures.of(look, address) as are_taken:
        found = _open(page, look, address, WIDE)
        if holding.changed_itself(page):
            found += _open(page, look, address, NARROW)
        holding.resize(page, NARROW, HEIGHT)
        look.state.act(page)
        expect(page.locator("body")).to_contain_text(look.state.says)
        assert look.title in page.title()
        assert _script_bytes(page) < MOST_SCRIPT_BYTES
        found += colours.refused(page)
        for width in (NARROW, WIDE, WIDEST, MIDDLE):
            found += _look_at(page, width)
            if are_taken():
                pictures.take(page, look, width)

    told = re.compile("Failed to load resource|Response Status Error")
    found += [text for text in complaints if not (look.state.is_refused and told.match(text))]
    complaints.clear()
    assert found == []


def _open(page: Page, look: Look, address: str, width: int) -> list[str]:
    """Open the page as on a screen of that width; return what moved until all of it was there.

    The screen is tall, so that what is far down is seen too; what moves counts as on one of the usual height.
    """
    state = look.state
    page.set_viewport_size({"width": width, "height": SCREENS * HEIGHT})
    state.before(page)
    answer = page.goto(address)
    assert answer is not None
    assert answer.status == state.status
    assert answer.headers["content-security-policy"] == POLICY
    holding.settle(page, is_live="stale" not in look.name)
    score, moved = holding.shift(page)
    score *= SCREENS**2  # the Layout Instability API divides the area that moved, and how far it did, by the screen's
    return [f"{width}: moved by {score:.4f}: {each}" for each in moved] if score > MOST_SHIFT else []


def _look_at(page: Page, width: int) -> list[str]:
    """Return what is wrong with the page as it is on a screen of that width."""
    holding.resize(page, width, HEIGHT)
    headings = holding.headings(page)
    found = [] if len(headings) == 1 else [f"its headings are {headings}"]
    found += [*holding.sticking_out(page), *holding.cut_off(page)]
    found += [*holding.untold_times(page), *holding.refused_by_policy(page)]
    if width in READ_BY_AXE:
        found += violations(page)
    return [f"{width}: {each}" for each in found]


def _script_bytes(page: Page) -> int:
    """Return how many bytes of script the page has, compressed as a server sends them."""
    sources = cast(list[str], page.evaluate("[...document.scripts].map((each) => each.src)"))
    assert sources
    assert all(sources), "a script stands in the page itself"
    return sum(_compressed_bytes(page, source.partition("://")[2].partition("/")[2]) for source in sources)


_compressed: dict[str, int] = {}
"""By path: a script is the same on every page."""


def _compressed_bytes(page: Page, path: str) -> int:
    if path not in _compressed:
        _compressed[path] = len(gzip.compress(page.request.get(f"/{path}").body()))
    return _compressed[path]
