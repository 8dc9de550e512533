"""HTTP routing: from method and path to the view, by a table of routes, matched segment by segment.

A path is written as "/v2/models/{model}/versions/{version}/infer"; "{model}:predict" is a segment with a fixed end.
Where both match, a fixed segment precedes a named one. Infer paths of known models bypass this table: see v2.py.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

from serving_runtime.common.errors import NotFound, ServingError
from serving_runtime.common.request import Cancellable
from serving_runtime.protocol.http.codec.json_body import json_object
from serving_runtime.protocol.http.wire.message import Reply, Request, Response, error_response, text_error

logger = logging.getLogger(__name__)


class Call(NamedTuple):
    """One request to a route.

    Attributes:
        names: values of the path's names, such as model and version.
    """

    request: Request
    reply: Reply
    names: dict[str, str]

    @property
    def model(self) -> str:
        return self.names["model"]

    @property
    def version(self) -> str:
        """Return the version in the path, empty without one."""
        return self.names.get("version", "")

    def content(self) -> dict[str, Any]:
        """Return the body's JSON object, an empty one for no body; raises InvalidArgument."""
        body = memoryview(self.request.body)[self.request.body_offset :]
        if not len(body):
            return {}
        return json_object(body)


EVENTS = "events"
"""Response schema of a route that answers by server-sent events."""

View: TypeAlias = Callable[[Call], Response | Cancellable | None]
"""Returns the answer; or None, or a handle to cancel, where it calls `reply` itself. Raises ServingError."""

Guard: TypeAlias = Callable[[str, Request], None]
"""Raises Forbidden where a group of routes is closed to a request."""


@dataclass(frozen=True, slots=True)
class Route:
    """One row of the table.

    Attributes:
        group: its name in --http-restricted-api.
        takes, gives: JSON schemas of request and response, by name in schemas.COMPONENTS; empty for none.
    """

    method: str
    path: str
    group: str
    summary: str
    view: View
    takes: str = ""
    gives: str = ""


@dataclass(slots=True)
class _Node:
    """Children of one segment; `named` are (name, fixed end, node), those with an end first."""

    fixed: dict[str, "_Node"] = field(default_factory=dict)
    named: list[tuple[str, str, "_Node"]] = field(default_factory=list)
    routes: dict[str, Route] = field(default_factory=dict)


class Routes:
    """All routes of an application."""

    def __init__(self, routes: Sequence[Route], guard: Guard | None = None) -> None:
        self.all = tuple(routes)
        self._guard = guard
        self._root = _Node()
        for route in routes:
            node = self._root
            for segment in route.path.split("/")[1:]:
                node = _child(node, segment)
            node.routes[route.method] = route

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        """Answer a request by its route, now or later; raises ServingError in place of answering."""
        found = self._find(request.target)
        if found is None:
            raise NotFound(f"there is nothing at {_shown(request.target)}")
        routes, names = found
        route = routes.get(request.method.decode("latin-1"))
        if route is None:
            allowed = " and ".join(routes)
            reply(text_error(405, f"this path takes {allowed} only", f"Allow: {', '.join(routes)}\r\n".encode()))
            return None
        if self._guard is not None:
            self._guard(route.group, request)
        answer = route.view(Call(request, reply, names))
        if isinstance(answer, Response):
            reply(answer)
            return None
        return answer

    def _find(self, target: bytes) -> tuple[dict[str, Route], dict[str, str]] | None:
        segments = [unquote(part) for part in target.split(b"?", 1)[0].decode("latin-1").split("/")[1:]]
        if segments and segments[-1] == "":
            segments.pop()
        return next(_matches(self._root, segments, 0, {}), None)


def of_versions(
    method: str, ending: str, group: str, summary: str, view: View, *, takes: str = "", gives: str = ""
) -> list[Route]:
    """Return the two routes of a view: for a model, and for one of its versions."""
    paths = (f"/v2/models/{{model}}{ending}", f"/v2/models/{{model}}/versions/{{version}}{ending}")
    return [Route(method, path, group, summary, view, takes, gives) for path in paths]


def later(work: Callable[[Call], Coroutine[Any, Any, Response]]) -> View:
    """Return a view for long work that goes on when its client leaves, such as loading a model."""

    def view(call: Call) -> None:
        task = asyncio.get_running_loop().create_task(_answer(work, call))
        _RUNNING.add(task)
        task.add_done_callback(_RUNNING.discard)

    return view


_RUNNING: set[asyncio.Task[None]] = set()
"""The loop itself keeps no task alive."""


async def _answer(work: Callable[[Call], Coroutine[Any, Any, Response]], call: Call) -> None:
    try:
        response = await work(call)
    except ServingError as error:
        response = error_response(error)
    except Exception:
        logger.exception("answering %r failed", call.request.target[:200])
        response = text_error(500, "internal error")
    call.reply(response)


def _child(node: _Node, segment: str) -> _Node:
    if not segment.startswith("{"):
        return node.fixed.setdefault(segment, _Node())
    name, _, ending = segment[1:].partition("}")
    for known_name, known_ending, child in node.named:
        if (known_name, known_ending) == (name, ending):
            return child
    child = _Node()
    node.named.append((name, ending, child))
    node.named.sort(key=lambda entry: -len(entry[1]))
    return child


def _matches(
    node: _Node, segments: Sequence[str], position: int, names: dict[str, str]
) -> Iterator[tuple[dict[str, Route], dict[str, str]]]:
    """Yield the matching routes, the best first."""
    if position == len(segments):
        if node.routes:
            yield node.routes, names
        return
    segment = segments[position]
    if segment in node.fixed:
        yield from _matches(node.fixed[segment], segments, position + 1, names)
    for name, ending, child in node.named:
        if segment.endswith(ending) and len(segment) > len(ending):
            named = {**names, name: segment.removesuffix(ending)}
            yield from _matches(child, segments, position + 1, named)


def _shown(target: bytes) -> str:
    return target.split(b"?", 1)[0].decode("latin-1")[:200]
