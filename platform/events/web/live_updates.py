"""Server-sent events of the pages: fragments rendered by the pages' own templates, sent when their content changed.

Each message is one fragment whose root has the id of what it replaces, and the event id is the page's cursor. A browser
that reconnects with its cursor (`Last-Event-ID`, or `?seen=` from the page itself) gets the changes since. `reload`
makes it reload the page: signed out, or the service is gone.
"""

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts.auth.access import Place, may, require
from accounts.auth.permission_changes import RightsWatch
from accounts.auth.permissions import page_scope, page_token
from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from accounts.selectors import token_of_session
from common.errors import NotFound
from events.domain import sse
from events.services.live_feed import NOTHING, Feed, Marks, Topic
from events.services.stream_seats import SEATS, Seat

PERIOD_S = 1.0
HEARTBEAT_S = 15.0
RETRY_MS = 2000


@dataclass(frozen=True, slots=True)
class Page:
    """A page in one state.

    Attributes:
        template: the whole page.
        fragments: templates of its parts; each has one root element with an id of its own.
        cursor: another number for another state.
    """

    template: str
    fragments: tuple[str, ...]
    cursor: int
    context: Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """The poll source of one kind of streams, and the permission to watch them."""

    marks: Callable[[Collection[int]], Marks]
    scope: Scope
    feeds: WeakKeyDictionary[AbstractEventLoop, Feed] = field(default_factory=WeakKeyDictionary)


def streamed(source: Source, place: Callable[..., Place]) -> Callable[[Callable[..., Topic]], Callable[..., Any]]:
    """Return a view that streams the topic of a function.

    Every stream is made here: without permission for its place the caller gets 403 or 404 before the function is
    called, and an open stream ends when permissions end (`_messages`).

    Args:
        place: the place of the address, given its parts.
    """

    def decorate(topic_of: Callable[..., Topic]) -> Callable[..., Any]:
        def opened(request: HttpRequest, **parts: Any) -> StreamingHttpResponse:
            where = place(**parts)
            require(page_token(request), source.scope, where)
            return _stream(request, topic_of(request, **parts), where, source)

        @never_cache
        @require_GET
        @page_scope(source.scope)
        @wraps(topic_of)
        async def view(request: HttpRequest, **parts: Any) -> StreamingHttpResponse:
            return await sync_to_async(opened)(request, **parts)

        return view

    return decorate


def anywhere() -> Place:
    """Return the place of a page that shows what its viewer may see."""
    return Place.anywhere()


def of_service(namespace: str, **_: object) -> Place:
    """Return the place of a service's page."""
    return Place.namespace(namespace)


def of_model(model: str, **_: object) -> Place:
    """Return the place of a model's page."""
    return Place.model(model)


def of_installation(**_: object) -> Place:
    """Return the place of a page of the whole installation."""
    return Place.installation()


def row_topic(kind: str, pk: int, page: Callable[[], Page]) -> Topic:
    """Return the changes of the page of one row of a kind."""
    return Topic.of_row(pk, partial(page_or_none, page), key=(kind, pk))


def _stream(request: HttpRequest, topic: Topic, place: Place, source: Source) -> StreamingHttpResponse:
    token = page_token(request)
    extra: dict[str, object] = {
        "csrf_token": get_token(request),
        "may_write": may(token, Scope.WRITE, place),
        "may_admin": may(token, Scope.ADMIN, place),
        "viewer": token.approver,
    }
    may_watch = partial(_may_watch, request, place, source.scope)
    seat = SEATS.take(token.pk, of_holder=settings.STREAMS_PER_TOKEN, of_process=settings.STREAMS_PER_PROCESS)
    content = _messages(topic, Fragments(extra, seen=_seen(request)), may_watch, source, seat)
    # X-Accel-Buffering: reverse proxies would keep a stream back until it ends.
    return StreamingHttpResponse(content, content_type=sse.CONTENT_TYPE, headers={"X-Accel-Buffering": "no"})


async def _messages(
    topic: Topic, fragments: "Fragments", may_watch: Callable[[], bool], source: Source, seat: Seat
) -> AsyncIterator[bytes]:
    try:
        async with aclosing(_updates(topic, fragments, may_watch, source)) as updates:
            async for message in updates:
                yield message
    finally:
        SEATS.free(seat)


async def _updates(
    topic: Topic, fragments: "Fragments", may_watch: Callable[[], bool], source: Source
) -> AsyncGenerator[bytes]:
    loop = asyncio.get_running_loop()
    feed = source.feeds.setdefault(loop, Feed(source.marks, PERIOD_S, RightsWatch().has_changed))
    next_check = loop.time() + HEARTBEAT_S
    async with feed.join(topic) as mailbox:
        yield sse.retry(RETRY_MS)
        while True:
            try:
                async with asyncio.timeout_at(next_check):
                    page = await mailbox.take()
            except TimeoutError:
                mailbox.doubted, page = True, NOTHING
                next_check = loop.time() + HEARTBEAT_S
                yield sse.event("still here", name="pulse")
            if mailbox.closed:
                return
            if mailbox.doubted:
                mailbox.doubted = False
                if not await sync_to_async(may_watch)():
                    yield sse.event("signed out", name="reload")
                    return
            if page is NOTHING:
                continue
            if page is None:
                yield sse.event("gone", name="reload")
                return
            for message in fragments.changed(page):
                yield message


class Fragments:
    """Renders a page's fragments for one viewer and remembers the last ones sent.

    Args:
        extra: the context that differs from viewer to viewer.
        seen: the cursor of the page as the viewer already has it; None sends everything.
    """

    def __init__(self, extra: dict[str, object], *, seen: int | None) -> None:
        self._extra = extra
        self._seen = seen
        self._sent: dict[str, str] = {}

    def changed(self, page: Page) -> list[bytes]:
        """Return a message for each fragment that differs from the last one sent."""
        seen, self._seen = self._seen, None
        if page.cursor == seen:
            # Not noted as sent: read while something changed, it can say more than what the viewer has by this cursor.
            return []
        rendered = {name: render_to_string(name, {**page.context, **self._extra}).strip() for name in page.fragments}
        changed = [html for name, html in rendered.items() if html != self._sent.get(name)]
        self._sent = rendered
        # Only the last one carries the cursor: who has it has them all.
        last = len(changed) - 1
        return [
            sse.event(html, name="fragment", event_id=page.cursor if index == last else None)
            for index, html in enumerate(changed)
        ]


def page_of_token(token_id: int, page: Callable[[ApiToken], Page]) -> Page | None:
    """Return the page as the token's user may see it at this moment; None where the token is gone."""
    token = ApiToken.objects.filter(pk=token_id).first()
    return None if token is None else page(token)


def page_or_none(load: Callable[[], Page]) -> Page | None:
    """Return the page; None where its service is gone."""
    try:
        return load()
    except NotFound:
        return None


def whole_page(request: HttpRequest, page: Page, place: Place) -> HttpResponse:
    """Return a page that is kept up to date, for the viewer."""
    token = page_token(request)
    viewing = {"may_write": may(token, Scope.WRITE, place), "viewer": token.approver}
    return render(request, page.template, {**page.context, "cursor": page.cursor, **viewing})


def _seen(request: HttpRequest) -> int | None:
    value = request.headers.get("Last-Event-ID") or request.GET.get("seen", "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else None


def _may_watch(request: HttpRequest, place: Place, scope: Scope) -> bool:
    """Return whether the browser's session, its token and the user's role still allow the page."""
    key = request.session.session_key
    if not key or not request.session.exists(key):
        return False
    token = token_of_session(request=request, now=timezone.now())
    return token is not None and may(token, scope, place)
