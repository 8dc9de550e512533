"""Server-sent events of the pages: fragments by the pages' own templates, sent when what they show has changed.

Each message is one fragment whose root has the id of what it replaces, and the event id is the page's cursor. A browser
that comes back with the cursor it has seen (`Last-Event-ID`, or `?seen=` from the page itself) gets what changed since.
`reload` tells it to fetch the page anew: signed out, or the service is gone.
"""

import asyncio
import time
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Callable, Collection, Hashable
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from django.middleware.csrf import get_token
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts.access import Place, may, require
from accounts.models import ApiToken
from accounts.permissions import page_scope
from accounts.rights import RightsWatch
from accounts.scopes import Scope
from accounts.selectors import token_of_session
from common import sse
from common.errors import NotFound
from deployments import traffic
from deployments.feed import NOTHING, Feed, Marks, Topic
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
from deployments.selectors.home import home_marks
from deployments.selectors.works import build_marks, tuning_marks
from deployments.web.gpu_page import gpu_page
from deployments.web.home_page import home_page
from deployments.web.pages import Page, detail_page, list_page
from deployments.web.recording_pages import recording_page, replay_page
from deployments.web.rollout_page import rollout_page
from deployments.web.service_filter import parse_filter
from deployments.web.work_pages import build_page, tuning_page

PERIOD_S = 1.0
HEARTBEAT_S = 15.0
RETRY_MS = 2000


@dataclass(frozen=True)
class Source:
    """What is polled for streams of one kind, and what it takes to watch them."""

    marks: Callable[[Collection[int]], Marks]
    scope: Scope
    feeds: WeakKeyDictionary[AbstractEventLoop, Feed] = field(default_factory=WeakKeyDictionary)


_OF_HOME = Source(home_marks, Scope.READ)
_OF_SERVICES, _OF_GPUS = Source(change_marks, Scope.READ), Source(gpu_marks, Scope.ADMIN)
_OF_BUILDS, _OF_TUNINGS = Source(build_marks, Scope.READ), Source(tuning_marks, Scope.READ)
_OF_RECORDINGS, _OF_REPLAYS = Source(recording_marks, Scope.READ), Source(replay_marks, Scope.READ)


@never_cache
@require_GET
@page_scope(Scope.READ)
async def home_stream(request: HttpRequest) -> StreamingHttpResponse:
    """Stream what changes at Home."""
    token: ApiToken = request.token  # type: ignore[attr-defined]
    topic = Topic(key=("home", token.pk), mark=_with_traffic, load=partial(_of_token, token.pk, home_page))
    return await sync_to_async(_stream)(request, topic, Place.anywhere(), _OF_HOME)


@never_cache
@require_GET
@page_scope(Scope.READ)
async def service_list_stream(request: HttpRequest) -> StreamingHttpResponse:
    """Stream what changes in the list of services."""
    token: ApiToken = request.token  # type: ignore[attr-defined]
    shown = parse_filter(request.GET.dict())
    load = partial(_of_token, token.pk, partial(list_page, shown=shown))
    topic = Topic(key=("services", token.pk, shown), mark=_with_traffic, load=load)
    return await sync_to_async(_stream)(request, topic, Place.anywhere())


@never_cache
@require_GET
@page_scope(Scope.READ)
async def service_stream(request: HttpRequest, namespace: str, name: str) -> StreamingHttpResponse:
    """Stream what changes on a service's page; raises NotFound."""
    service = await sync_to_async(service_detail)(namespace=namespace, name=name)
    load = partial(_or_none, partial(detail_page, namespace, name))
    topic = Topic.of_row(service.id, load, key=service.id)
    return await sync_to_async(_stream)(request, topic, Place.namespace(namespace))


@never_cache
@require_GET
@page_scope(Scope.READ)
async def rollout_stream(request: HttpRequest, namespace: str, name: str, rollout_id: int) -> StreamingHttpResponse:
    """Stream what changes on a rollout's page; raises NotFound."""
    row = await sync_to_async(rollout_of_service)(namespace=namespace, name=name, rollout_id=rollout_id)
    load = partial(_or_none, partial(rollout_page, namespace, name, rollout_id))
    topic = Topic.of_row(row.service_id, load, key=("rollout", row.pk))
    return await sync_to_async(_stream)(request, topic, Place.namespace(namespace))


@never_cache
@require_GET
@page_scope(Scope.ADMIN)
async def gpu_stream(request: HttpRequest, name: str) -> StreamingHttpResponse:
    """Stream what changes on the page of a cluster's GPUs; raises NotFound."""
    cluster = await sync_to_async(cluster_get)(name=name)
    topic = _topic("gpus", cluster.pk, partial(gpu_page, name))
    return await sync_to_async(_stream)(request, topic, Place.installation(), _OF_GPUS)


@never_cache
@require_GET
@page_scope(Scope.READ)
async def build_stream(request: HttpRequest, model: str, number: int, build_id: int) -> StreamingHttpResponse:
    """Stream what changes on a build's page; raises NotFound."""
    place = Place.model(model)
    await sync_to_async(require)(request.token, Scope.READ, place)  # type: ignore[attr-defined]
    row = await sync_to_async(build_get)(model=model, number=number, build_id=build_id)
    topic = _topic("build", row.pk, partial(build_page, model, number, build_id))
    return await sync_to_async(_stream)(request, topic, place, _OF_BUILDS)


@never_cache
@require_GET
@page_scope(Scope.READ)
async def tuning_stream(request: HttpRequest, model: str, number: int, tuning_id: int) -> StreamingHttpResponse:
    """Stream what changes on a tuning's page; raises NotFound."""
    place = Place.model(model)
    await sync_to_async(require)(request.token, Scope.READ, place)  # type: ignore[attr-defined]
    row = await sync_to_async(tuning_get)(model=model, number=number, tuning_id=tuning_id)
    topic = _topic("tuning", row.pk, partial(tuning_page, model, number, tuning_id))
    return await sync_to_async(_stream)(request, topic, place, _OF_TUNINGS)


@never_cache
@require_GET
@page_scope(Scope.READ)
async def recording_stream(request: HttpRequest, namespace: str, name: str, recording_id: int) -> StreamingHttpResponse:
    """Stream what changes on a recording's page; raises NotFound."""
    row = await sync_to_async(recording_get)(namespace=namespace, name=name, recording_id=recording_id)
    topic = _topic("recording", row.pk, partial(recording_page, namespace, name, recording_id))
    return await sync_to_async(_stream)(request, topic, Place.namespace(namespace), _OF_RECORDINGS)


@never_cache
@require_GET
@page_scope(Scope.READ)
async def replay_stream(request: HttpRequest, namespace: str, name: str, replay_id: int) -> StreamingHttpResponse:
    """Stream what changes on a replay's page; raises NotFound."""
    row = await sync_to_async(replay_get)(namespace=namespace, name=name, replay_id=replay_id)
    topic = _topic("replay", row.pk, partial(replay_page, namespace, name, replay_id))
    return await sync_to_async(_stream)(request, topic, Place.namespace(namespace), _OF_REPLAYS)


def _topic(kind: str, pk: int, page: Callable[[], Page]) -> Topic:
    """Return what changes on the page of one row of a kind."""
    return Topic.of_row(pk, partial(_or_none, page), key=(kind, pk))


def _stream(request: HttpRequest, topic: Topic, place: Place, source: Source = _OF_SERVICES) -> StreamingHttpResponse:
    token: ApiToken = request.token  # type: ignore[attr-defined]
    extra: dict[str, object] = {
        "csrf_token": get_token(request),
        "may_write": may(token, Scope.WRITE, place),
        "may_admin": may(token, Scope.ADMIN, place),
        "viewer": token.user.username,
    }
    may_watch = partial(_may_watch, request, place, source.scope)
    content = _messages(topic, Fragments(extra, seen=_seen(request)), may_watch, source)
    # X-Accel-Buffering: reverse proxies would keep a stream back until it ends.
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
    """Renders a page's fragments for one viewer and remembers what that viewer has.

    Args:
        extra: what differs from viewer to viewer.
        seen: the cursor of the page as the viewer already has it; None sends everything.
    """

    def __init__(self, extra: dict[str, object], *, seen: int | None) -> None:
        self._extra = extra
        self._seen = seen
        self._sent: dict[str, str] = {}

    def changed(self, page: Page) -> list[bytes]:
        """Return a message for each fragment that is not as it was sent last."""
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


def _with_traffic(marks: Marks) -> Hashable:
    """Return a mark for all services that is another one also when their traffic was looked up again."""
    return marks.everything, int(time.monotonic() / traffic.EVERY.total_seconds())


def _of_token(token_id: int, page: Callable[[ApiToken], Page]) -> Page | None:
    """Return the page as the token's user may see it at this moment; None where the token is gone."""
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
    """Return whether the browser's session, its token and the user's role still open the page."""
    key = request.session.session_key
    if not key or not request.session.exists(key):
        return False
    token = token_of_session(request=request, now=timezone.now())
    return token is not None and may(token, scope, place)
