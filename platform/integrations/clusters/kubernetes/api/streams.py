"""Lists and watches of the API server: objects at a moment, and the events from then on."""

import json
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple

import urllib3

from common.errors import Conflict, Unavailable

Json = dict[str, Any]


class HistoryGone(Conflict):
    """The API server no longer has the events since that resourceVersion (410); everything has to be listed."""


class Listing(NamedTuple):
    """Objects, sorted by name, and the resourceVersion at which they were read."""

    items: tuple[Json, ...]
    resource_version: str


class Stream:
    """Events of one watch: objects with `type` and `object`; ends when the API server ends it."""

    def __init__(self, answer: urllib3.BaseHTTPResponse, server: str) -> None:
        self._answer = answer
        self._server = server

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answer.close()

    def __iter__(self) -> Iterator[Json]:
        """Yield events as they come; raises Unavailable where the connection breaks."""
        rest = b""
        try:
            for chunk in self._answer.stream():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield json.loads(line)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise Unavailable(f"the Kubernetes API server {self._server} broke off a watch: {error}") from error

    def interrupt(self) -> None:
        """End it from another thread: a reader that waits for an event returns."""
        try:
            self._answer.shutdown()
        except (OSError, ValueError, RuntimeError):
            return  # it has ended by itself
