"""Every page in every state, at three widths and in both themes: it fits, anybody can use it, and it is pictured."""

import gzip
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, cast

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.fixtures import Settings

from accounts.scopes import Scope
from fairlead.security import POLICY
from tests import scenes
from tests.browser.axe import CONTRAST, violations
from tests.browser.states import gallery, holding
from tests.browser.states.listing import NO_PAGES, PAGES, Look, looks
from tests.browser.states.state import KINDS, Stage

pytestmark = pytest.mark.browser

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
WIDE, WIDEST, MIDDLE, NARROW = 1280, 1920, 768, 390
HEIGHT = 900
PICTURED_IN_CI = {(WIDE, "light"), (NARROW, "dark")}
"""Where nobody looks at them at once: six hundred pictures take minutes."""
MOST_SHIFT = 0.02
MOST_SCRIPT_BYTES = 150_000
SAMPLES = {"path": "x", "str": "x", "int": 1, "slug": "x"}


def routes(
    patterns: list[URLPattern | URLResolver] | None = None, space: str = "", root: str = "/"
) -> Iterator[tuple[str, str]]:
    """Yield the name and an address of each route that is not the API's."""
    for each in get_resolver().url_patterns if patterns is None else patterns:
        path = root + re.sub(r"<(?:(\w+):)?\w+>", lambda found: str(SAMPLES[found[1] or "str"]), str(each.pattern))
        if path.startswith("/api/") or str(each.pattern).startswith("^api/"):
            continue
        if isinstance(each, URLResolver):
            yield from routes(each.url_patterns, f"{each.namespace}:" if each.namespace else space, path)
        else:
            yield f"{space}{each.name or each.pattern}", path


@pytest.mark.django_db
def test_every_address_is_a_page_of_the_list_or_known_to_be_none() -> None:
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
def pictures() -> Iterator[Path]:
    """Give the folder of the pictures, and leave a page there that shows them all."""
    folder = gallery.folder("pages")
    yield folder
    gallery.write(folder)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path) -> Stage:
    settings.CLUSTER_FOLDER = tmp_path / "nothing"
    return Stage(monkeypatch, settings, tmp_path)


def sign_in(context: BrowserContext, server: str, scope: Scope = Scope.ADMIN) -> None:
    """Give the browser the cookie of a session, as signing in does."""
    client = Client()
    client.post("/signin/", {"token": scenes.token(scope)})
    name = django_settings.SESSION_COOKIE_NAME
    context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": server}])


@pytest.mark.parametrize("look", list(looks()), ids=str)
def test_a_page_holds_for_everybody(
    look: Look, stage: Stage, context: BrowserContext, server: str, complaints: list[str], pictures: Path
) -> None:
    if look.state.scope is not None:
        sign_in(context, server, look.state.scope)
    address = look.state.arrange(stage)
    context.add_init_script(holding.WATCH)
    page = context.new_page()

    found = _open(page, look, address, WIDE)
    assert look.title in page.title()
    assert _script_bytes(page) < MOST_SCRIPT_BYTES
    found += _look_at(page, look, WIDE, pictures)
    found += _look_at(page, look, WIDEST, pictures)
    found += _fits(page, MIDDLE)
    found += _open(page, look, address, NARROW)
    found += _look_at(page, look, NARROW, pictures)

    told = re.compile("Failed to load resource|Response Status Error")
    found += [text for text in complaints if not (look.state.is_refused and told.match(text))]
    complaints.clear()
    assert found == []


def _open(page: Page, look: Look, address: str, width: int) -> list[str]:
    """Open the page as on a screen of that width, and bring it into its state; return what moved meanwhile."""
    state = look.state
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": width, "height": HEIGHT})
    state.before(page)
    answer = page.goto(address)
    assert answer is not None
    assert answer.status == state.status
    assert answer.headers["content-security-policy"] == POLICY
    holding.settle(page, is_live="stale" not in look.name)
    score, moved = holding.shift(page)
    state.act(page)
    expect(page.locator("body")).to_contain_text(state.says)
    assert len(holding.headings(page)) == 1, holding.headings(page)
    return [f"{width}: moved by {score:.4f}: {each}" for each in moved] if score > MOST_SHIFT else []


def _look_at(page: Page, look: Look, width: int, pictures: Path) -> list[str]:
    """Return what is wrong with the page as it is, in both themes, which differ in nothing but colour."""
    page.set_viewport_size({"width": width, "height": HEIGHT})
    found = []
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        if "CI" not in os.environ or (width, theme) in PICTURED_IN_CI:
            page.screenshot(path=pictures / f"{look}-{width}-{theme}.png", full_page=True, animations="disabled")
        if width != WIDEST:
            found += [f"{theme}: {each}" for each in violations(page, only=None if theme == "light" else CONTRAST)]
    found += [*holding.untold_times(page), *holding.refused_by_policy(page)]
    return [f"{width}: {each}" for each in found] + _fits(page, width)


def _fits(page: Page, width: int) -> list[str]:
    """Return what does not fit on a screen of that width."""
    page.set_viewport_size({"width": width, "height": HEIGHT})
    return [f"{width}: {each}" for each in (*holding.sticking_out(page), *holding.cut_off(page))]


def _script_bytes(page: Page) -> int:
    """Return how many bytes of script the page has, compressed as a server sends them."""
    sources = cast(list[str], page.evaluate("[...document.scripts].map((each) => each.src)"))
    assert sources
    assert all(sources), "a script stands in the page itself"
    return sum(len(gzip.compress(page.request.get(source).body())) for source in sources)
