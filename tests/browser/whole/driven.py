"""What people did on the pages of a whole platform: which addresses their browsers opened, which actions they took."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

import pytest
from django.urls import Resolver404, resolve
from playwright.sync_api import Download, Response


def drives(*names: str) -> pytest.MarkDecorator:
    """Mark a test by the pages and actions it drives, such as `GET home` or `POST rollout-action promote`.

    Together the marked tests drive everything there is (`test_everything_is_driven.py`), and each really does what it
    says (`Driven.lacks`).
    """
    return pytest.mark.drives(*names)


def name_of(method: str, path: str) -> str:
    """Return the method and the route of an address, and its verb where the route has one; empty if it has no route."""
    try:
        found = resolve(path)
    except Resolver404:
        return ""
    verb = [found.kwargs["verb"]] if ":verb>" in found.route else []
    return " ".join([method, found.url_name or found.route, *verb])


class Driven:
    """What was answered as asked, by `name_of`."""

    def __init__(self) -> None:
        self.done: set[str] = set()

    def saw(self, response: Response) -> None:
        """Take in an answer: up to 399 it was done, from 400 on it was refused."""
        if response.status < 400:
            self.done.add(name_of(response.request.method, urlsplit(response.url).path))

    def took(self, file: Download) -> None:
        """Take in a file that a link gives to keep, whose answer is none of the page's; the test reads the file."""
        self.done.add(name_of("GET", urlsplit(file.url).path))

    def lacks(self, names: Iterable[str]) -> set[str]:
        return set(names) - self.done


def is_console_echo(text: str) -> bool:
    """Return whether the console, or htmx there, only repeats that an answer was refused, which the page says."""
    return (
        re.match(
            r"(Failed to load resource: the server responded with a status of|Response Status Error Code) [45]\d\d",
            text,
        )
        is not None
    )
