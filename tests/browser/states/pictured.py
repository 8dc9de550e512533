"""Which pages are pictured: all on demand, in CI those that a change touches, else none.

`FAIRLEAD_SCREENSHOTS` names the folder and demands all of them. In CI a page is touched by a change to a template that
it renders, to its view or what the folder of that has beside views, to its scenes, and to any style or script.
"""

import inspect
import os
import subprocess
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from django.template import Template
from django.test.signals import template_rendered
from django.urls import Resolver404, resolve
from playwright.sync_api import Page

from tests.browser.states import gallery
from tests.browser.states.listing import Look

ROOT = Path(__file__).parents[3]
OF_EVERY_PAGE = ("frontend/styles/", "frontend/src/", "frontend/static/")
IN_CI = {(1280, "light"), (390, "dark")}
"""Where nobody looks at them at once."""
ALWAYS = {(width, theme) for width in (1280, 1920, 390) for theme in ("light", "dark")}
MAIN = ("origin/main", "origin/HEAD", "main")


class Pictures:
    """The pictures of a run, and the page that shows them."""

    def __init__(self) -> None:
        self._wanted = ALWAYS if "FAIRLEAD_SCREENSHOTS" in os.environ else IN_CI if "CI" in os.environ else set()
        self._changed = changed() if self._wanted is IN_CI else frozenset()

    @contextmanager
    def of(self, look: Look, address: str) -> Iterator[Callable[[], bool]]:
        """Watch what a page is made of; gives whether it is pictured, for when it is there."""
        made_of = _sources(look, address)

        def note(sender: Template, **_: object) -> None:
            made_of.add(_relative(sender.origin.name))

        template_rendered.connect(note)
        try:
            yield lambda: self._wanted is ALWAYS or is_touched(made_of, self._changed)
        finally:
            template_rendered.disconnect(note)

    def take(self, page: Page, look: Look, width: int) -> None:
        """Picture the page as it is, in each theme that is wanted."""
        for theme in ("light", "dark"):
            if (width, theme) in self._wanted:
                page.emulate_media(color_scheme=theme)
                path = gallery.folder("pages") / f"{look}-{width}-{theme}.png"
                page.screenshot(path=path, full_page=True, animations="disabled")
        page.emulate_media(color_scheme="light")

    def finish(self) -> None:
        """Leave a page that shows them all."""
        if self._wanted:
            gallery.write(gallery.folder("pages"))


def is_touched(made_of: Collection[str], by: Collection[str]) -> bool:
    """Return whether a page that is made of these files and folders differs by a change of those files."""
    if any(file.startswith(OF_EVERY_PAGE) for file in by):
        return True
    parts = {_folder(file) for file in by if file.endswith(".py") and not file.endswith("views.py")}
    return not (set(by) | parts).isdisjoint(made_of)


@cache
def changed(root: Path = ROOT) -> frozenset[str]:
    """Return the files that differ from where the branch left main, on main from the last commit but one."""
    head = _git(root, "rev-parse", "HEAD")
    bases = (_git(root, "merge-base", "HEAD", name) for name in MAIN)
    base = next((each for each in bases if each not in {"", head}), "HEAD~1")
    return frozenset(_git(root, "diff", "--name-only", base).splitlines())


def _git(root: Path, *arguments: str) -> str:
    """Return what Git says; nothing where there is no Git or no such commit."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _sources(look: Look, address: str) -> set[str]:
    """Return the files of a page's view and scenes, and the folder of the view with `/` at its end."""
    found = {_relative(inspect.getfile(look.state.arrange))}
    try:
        view = inspect.unwrap(resolve(address.partition("?")[0]).func)
    except Resolver404:
        return found
    file = _relative(inspect.getfile(view))
    return found | {file, _folder(file)}


def _relative(file: str) -> str:
    return os.path.relpath(file, ROOT)


def _folder(file: str) -> str:
    return f"{Path(file).parent}/"
