"""What a page is looked at in: a state, made by a scene, and what it says so that one knows that it is that state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Page
from pytest_django.fixtures import Settings

from accounts.domain.scopes import Scope

KINDS = ("empty", "busy", "error")
"""Of each of these every page has a state, or a reason why it has none."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a scene may set up beside the database.

    Attributes:
        patch: undone after the state was looked at, as `settings` are.
        folder: empty, for files.
    """

    patch: pytest.MonkeyPatch
    settings: Settings
    folder: Path


Arrange = Callable[[Stage], str]
"""Makes a scene; returns the address of the page."""


def _nothing(_page: Page) -> None:
    """Nothing is done on the page."""


@dataclass(frozen=True, slots=True)
class State:
    """One state of a page.

    Attributes:
        says: words on the page that only this state has; of an empty one they say what to do next.
        before: done before the page is opened, `act` once it is there.
        scope: of the token that the viewer signed in with; None is not signed in.
        status: of the answer.
        title: what the page's title names, where that is not what it names in its other states.
        is_refused: whether the browser itself tells of a refusal on its console.
    """

    arrange: Arrange
    says: str
    before: Callable[[Page], None] = _nothing
    act: Callable[[Page], None] = _nothing
    scope: Scope | None = Scope.ADMIN
    status: int = 200
    title: str = ""
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class PageStates:
    """One page in all its states.

    Attributes:
        title: what the page's title names.
        states: by a name that begins with one of `KINDS`.
        without: by kind, why the page has no such state.
    """

    title: str
    states: Mapping[str, State]
    without: Mapping[str, str] = field(default_factory=dict)
