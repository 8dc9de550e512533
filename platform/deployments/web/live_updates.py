"""Server-sent events of the pages: fragments rendered by the pages' own templates, sent when their content changed.

Each message is one fragment whose root has the id of what it replaces, and the event id is the page's cursor. A browser
that reconnects with its cursor (`Last-Event-ID`, or `?seen=` from the page itself) gets the changes since. `reload`
makes it reload the page: signed out, or the service is gone.
"""

import asyncio
import time
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Callable, Collection, Hashable
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from django.middleware.csrf import get_token
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
from common.http import sse
from console.home import home_marks
from console.home_page import home_page
from deployments.reconcile.participants import traffic
from deployments.selectors import (
    build_get,
    change_marks,
    cluster_get,
    gpu_marks,
    recording_get,
    recording_marks,
    replay_get,
    replay_marks,
    rollout_of_service,
    service_detail,
    tuning_get,
)
from deployments.web.pages import Page, detail_page, list_page
from deployments.web.rollouts.page import rollout_page
from deployments.web.services.filter import parse_filter
from events.live_feed import NOTHING, Feed, Marks, Topic
from gpus.web.gpu_page import gpu_page
from model_jobs.pages import build_page, tuning_page
from model_jobs.selectors import build_marks, tuning_marks
from recordings.web.recording_pages import recording_page, replay_page

PERIOD_S = 1.0
HEARTBEAT_S = 15.0
RETRY_MS = 2000


@dataclass(frozen=True)
class Source:
    """The poll source of one kind of streams, and the permission to watch them."""

    marks: Callable[[Collection[int]], Marks]
    scope: Scope
    feeds: WeakKeyDictionary[AbstractEventLoop, Feed] = field(default_factory=WeakKeyDictionary)


_OF_HOME = Source(home_marks, Scope.READ)
_OF_SERVICES, _OF_GPUS = Source(change_marks, Scope.READ), Source(gpu_marks, Scope.ADMIN)
_OF_BUILDS, _OF_TUNINGS = Source(build_marks, Scope.READ), Source(tuning_marks, Scope.READ)
_OF_RECORDINGS, _OF_REPLAYS = Source(recording_marks, Scope.READ), Source(replay_marks, Scope.READ)


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


def _anywhere() -> Place:
    return Place.anywhere()


def _of_service(namespace: str, **_: object) -> Place:
    return Place.namespace(namespace)


def _of_model(model: str, **_: object) -> Place:
    return Place.model(model)


def _of_cluster(**_: object) -> Place:
    return Place.installation()


@streamed(_OF_HOME, _anywhere)
def home_stream(request: HttpRequest) -> Topic:
    """Stream the changes of Home."""
    token = page_token(request)
    return Topic(key=("home", token.pk), mark=_with_traffic, load=partial(_of_token, token.pk, home_page))


@streamed(_OF_SERVICES, _anywhere)
def service_list_stream(request: HttpRequest) -> Topic:
    """Stream the changes of the list of services."""
    token = page_token(request)
    shown = parse_filter(request.GET.dict())
    load = partial(_of_token, token.pk, partial(list_page, shown=shown))
    return Topic(key=("services", token.pk, shown), mark=_with_traffic, load=load)


@streamed(_OF_SERVICES, _of_service)
def service_stream(_request: HttpRequest, namespace: str, name: str) -> Topic:
    """Stream the changes of a service's page; raises NotFound."""
    service = service_detail(namespace=namespace, name=name)
    return Topic.of_row(service.id, partial(_or_none, partial(detail_page, namespace, name)), key=service.id)


@streamed(_OF_SERVICES, _of_service)
def rollout_stream(_request: HttpRequest, namespace: str, name: str, rollout_id: int) -> Topic:
    """Stream the changes of a rollout's page; raises NotFound."""
    row = rollout_of_service(namespace=namespace, name=name, rollout_id=rollout_id)
    load = partial(_or_none, partial(rollout_page, namespace, name, rollout_id))
    return Topic.of_row(row.service_id, load, key=("rollout", row.pk))


@streamed(_OF_GPUS, _of_cluster)
def gpu_stream(_request: HttpRequest, name: str) -> Topic:
    """Stream the changes of the page of a cluster's GPUs; raises NotFound."""
    return _topic("gpus", cluster_get(name=name).pk, partial(gpu_page, name))


@streamed(_OF_BUILDS, _of_model)
def build_stream(_request: HttpRequest, model: str, number: int, build_id: int) -> Topic:
    """Stream the changes of a build's page; raises NotFound."""
    row = build_get(model=model, number=number, build_id=build_id)
    return _topic("build", row.pk, partial(build_page, model, number, build_id))


@streamed(_OF_TUNINGS, _of_model)
def tuning_stream(_request: HttpRequest, model: str, number: int, tuning_id: int) -> Topic:
    """Stream the changes of a tuning's page; raises NotFound."""
    row = tuning_get(model=model, number=number, tuning_id=tuning_id)
    return _topic("tuning", row.pk, partial(tuning_page, model, number, tuning_id))


@streamed(_OF_RECORDINGS, _of_service)
def recording_stream(_request: HttpRequest, namespace: str, name: str, recording_id: int) -> Topic:
    """Stream the changes of a recording's page; raises NotFound."""
    row = recording_get(namespace=namespace, name=name, recording_id=recording_id)
    return _topic("recording", row.pk, partial(recording_page, namespace, name, recording_id))


@streamed(_OF_REPLAYS, _of_service)
def replay_stream(_request: HttpRequest, namespace: str, name: str, replay_id: int) -> Topic:
    """Stream the changes of a replay's page; raises NotFound."""
    row = replay_get(namespace=namespace, name=name, replay_id=replay_id)
    return _topic("replay", row.pk, partial(replay_page, namespace, name, replay_id))


def _topic(kind: str, pk: int, page: Callable[[], Page]) -> Topic:
    """Return the topic of the page of one row of a kind."""
    return Topic.of_row(pk, partial(_or_none, page), key=(kind, pk))


def _stream(request: HttpRequest, topic: Topic, place: Place, source: Source) -> StreamingHttpResponse:
    token = page_token(request)
    extra: dict[str, object] = {
        "csrf_token": get_token(request),
        "may_write": may(token, Scope.WRITE, place),
        "may_admin": may(token, Scope.ADMIN, place),
        "viewer": token.user.username,
    }
    may_watch = partial(_may_watch, request, place, source.scope)
    content = _messages(topic, Fragments(extra, seen=_seen(request)), may_watch, source)
    # X-Accel-Buffering: reverse proxies would buffer a stream until it ends.
    return StreamingHttpResponse(content, content_type=sse.CONTENT_TYPE, headers={"X-Accel-Buffering": "no"})


async def _messages(
    topic: Topic, fragments: "Fragments", may_watch: Callable[[], bool], source: Source
) -> AsyncIterator[bytes]:
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
            # Not recorded as sent: read during a change, it may be newer than the viewer's page at this cursor.
            return []
        rendered = {name: render_to_string(name, {**page.context, **self._extra}).strip() for name in page.fragments}
        changed = [html for name, html in rendered.items() if html != self._sent.get(name)]
        self._sent = rendered
        # Only the last one carries the cursor: with it the viewer has them all.
        last = len(changed) - 1
        return [
            sse.event(html, name="fragment", event_id=page.cursor if index == last else None)
            for index, html in enumerate(changed)
        ]


def _with_traffic(marks: Marks) -> Hashable:
    """Return a mark for all services that also changes with every new sample of their traffic."""
    return marks.everything, int(time.monotonic() / traffic.EVERY.total_seconds())


def _of_token(token_id: int, page: Callable[[ApiToken], Page]) -> Page | None:
    """Return the page as the token's user may see it now; None where the token is gone."""
    token = ApiToken.objects.filter(pk=token_id).first()
    return None if token is None else page(token)


def _or_none(load: Callable[[], Page]) -> Page | None:
    """Return the page; None where its service is gone."""
    try:
        return load()
    except NotFound:
        return None


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
