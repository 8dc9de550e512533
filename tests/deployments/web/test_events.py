"""The event streams, through the ASGI application and on the real database."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.test import Client
from django.utils import timezone

from accounts.domain.scopes import Scope
from accounts.models import ApiToken, User
from accounts.services import token_revoke
from accounts.services.teams import member_delete
from control_plane.asgi import application
from deployments.domain.phases import Phase
from deployments.models import InferenceService, Rollout
from deployments.selectors import service_detail
from deployments.services import rollout_abort
from events.web import live_updates
from events.web.live_updates import Page
from tests import scenes

pytestmark = pytest.mark.django_db(transaction=True)

DEADLINE_S = 10.0
DETAIL = "/services/default/digits/stream"


@pytest.fixture(autouse=True)
def _looked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_updates, "PERIOD_S", 0.02)


class Stream:
    """An open stream: its status, its headers, and its messages as they come."""

    def __init__(self, communicator: ApplicationCommunicator) -> None:
        self._communicator = communicator
        self._buffer = ""
        self.status = 0
        self.headers: dict[str, str] = {}

    async def start(self) -> None:
        message = await self._communicator.receive_output(DEADLINE_S)
        self.status = message["status"]
        self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}

    async def message(self) -> dict[str, str]:
        """Return the fields of the next message (comments under the empty name); empty at the end of the stream."""
        while "\n\n" not in self._buffer:
            output = await self._communicator.receive_output(DEADLINE_S)
            self._buffer += output.get("body", b"").decode()
            if not output.get("more_body") and not self._buffer:
                return {}
        block, _, self._buffer = self._buffer.partition("\n\n")
        fields: dict[str, str] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            fields[name] = fields[name] + "\n" + value.lstrip() if name in fields else value.lstrip()
        return fields

    async def until(self, condition: Callable[[dict[str, str]], bool]) -> list[dict[str, str]]:
        """Return the messages up to the first one of which `condition` holds."""
        messages = []
        async with asyncio.timeout(DEADLINE_S):
            while not messages or not condition(messages[-1]):
                messages.append(await self.message())
                assert messages[-1], "the stream ended"
        return messages


@asynccontextmanager
async def opened(client: Client, path: str, *, query: str = "", last_event_id: str = "") -> AsyncIterator[Stream]:
    """Open a stream with the cookies of `client`; leave it as a browser does."""
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    headers = [(b"host", b"testserver"), (b"cookie", cookies.encode())]
    if last_event_id:
        headers.append((b"last-event-id", last_event_id.encode()))
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": headers,
    }
    communicator = ApplicationCommunicator(application, scope)
    await communicator.send_input({"type": "http.request", "body": b"", "more_body": False})
    stream = Stream(communicator)
    await stream.start()
    try:
        yield stream
    finally:
        await communicator.send_input({"type": "http.disconnect"})
        await communicator.wait(DEADLINE_S)


def signed_in(scope: Scope = Scope.WRITE) -> Client:
    client = Client()
    client.post("/signin/", {"token": scenes.token(scope, f"{scope}-user")})
    return client


def begun(step_index: int = 0, phase: Phase = Phase.PROGRESSING) -> tuple[InferenceService, Rollout]:
    service = scenes.service()
    return service, scenes.rollout(service, step_index=step_index, phase=phase)


def shows(words: str) -> Callable[[dict[str, str]], bool]:
    return lambda message: words in message.get("data", "").replace("\N{NO-BREAK SPACE}", " ")


@sync_to_async
def arranged(scope: Scope = Scope.WRITE) -> tuple[Client, InferenceService, Rollout]:
    return (signed_in(scope), *begun())


async def test_a_change_of_the_rollout_comes_as_fragments_of_the_page() -> None:
    client, _, rollout = await arranged()

    async with opened(client, DETAIL) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        assert "retry" in await stream.message()
        first = await stream.until(shows('id="events"'))
        await sync_to_async(scenes.move)(rollout, step_index=1)
        changed = await stream.until(lambda message: "id" in message)

    assert {message["event"] for message in first + changed} == {"fragment"}
    assert any(shows("Step 2 of 3, 25 %")(message) for message in changed)
    assert not any(shows('id="calling"')(message) for message in changed), "what did not change is not sent"


async def test_a_new_event_comes_with_its_fragment_and_buttons_with_theirs() -> None:
    client, _, rollout = await arranged()

    async with opened(client, DETAIL) as stream:
        await stream.until(shows('id="events"'))
        await sync_to_async(rollout_abort)(rollout_id=rollout.pk, actor="alice", now=timezone.now())
        changed = await stream.until(shows('id="events"'))

    assert shows("is Aborted")(changed[-1])
    head = next(message["data"] for message in changed if 'id="rollout-head"' in message["data"])
    assert 'popovertarget="confirm-retry"' in head
    assert "csrfmiddlewaretoken" in head


async def test_who_may_only_read_gets_no_buttons() -> None:
    client, _, _ = await arranged(Scope.READ)

    async with opened(client, DETAIL) as stream:
        messages = await stream.until(shows('id="events"'))

    assert not any("popovertarget" in message.get("data", "") for message in messages)


@pytest.mark.parametrize("way", ["the page's cursor", "the browser's Last-Event-ID"])
async def test_what_the_browser_has_is_not_sent_again(way: str) -> None:
    client, _, rollout = await arranged()
    seen = str((await sync_to_async(service_detail)(namespace="default", name="digits", now=timezone.now())).changes)
    cursor = {"query": f"seen={seen}"} if way == "the page's cursor" else {"last_event_id": seen, "query": "seen=0"}

    async with opened(client, DETAIL) as other, opened(client, DETAIL, **cursor) as stream:
        # The other stream has the present state, so this one began with it too.
        await other.until(shows('id="events"'))
        assert "retry" in await stream.message()
        await sync_to_async(scenes.move)(rollout, reason_message="the only news")
        messages = await stream.until(lambda message: "id" in message)

    assert int(messages[-1]["id"]) > int(seen)
    assert any(shows("The only news")(message) for message in messages)


def test_what_was_read_while_it_changed_is_sent_though_its_cursor_was_seen() -> None:
    def page(cursor: int, message: str) -> Page:
        notices = {"messages": [message]}
        return Page("", ("_notices.html",), cursor, notices)

    fragments = live_updates.Fragments({}, seen=7)

    assert fragments.changed(page(7, "newer than its cursor")) == []
    assert len(fragments.changed(page(8, "newer than its cursor"))) == 1
    assert fragments.changed(page(9, "newer than its cursor")) == []


async def test_the_list_follows_all_services() -> None:
    client = await sync_to_async(signed_in)()

    async with opened(client, "/services/stream") as stream:
        await stream.until(shows("No services yet"))
        await sync_to_async(scenes.service)("ranker")
        await stream.until(shows("/services/default/ranker/"))


async def test_the_page_of_a_rollout_follows_it_alone() -> None:
    client, service, rollout = await arranged()

    async with opened(client, f"/services/default/digits/rollouts/{rollout.pk}/stream") as stream:
        await stream.until(shows('id="events"'))
        await sync_to_async(scenes.move)(rollout, step_index=1)
        changed = await stream.until(lambda message: "id" in message)
        assert any(shows("Step 2 of 3, 25 %")(message) for message in changed)
        assert not any(shows('id="rollout-siblings"')(message) for message in changed), "nothing is new there"
        await sync_to_async(service.delete)()
        assert (await stream.until(lambda message: message.get("event") == "reload"))[-1]["data"] == "gone"


async def test_the_browser_is_told_to_reload_when_the_service_is_gone() -> None:
    client, service, _ = await arranged()

    async with opened(client, DETAIL) as stream:
        await stream.until(shows('id="events"'))
        await sync_to_async(service.delete)()
        messages = await stream.until(lambda message: message.get("event") == "reload")

    assert messages[-1]["data"] == "gone"


async def test_a_quiet_stream_is_kept_open_until_its_token_is_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_updates, "HEARTBEAT_S", 0.05)
    client, _, _ = await arranged()

    async with opened(client, DETAIL) as stream:
        await stream.until(lambda message: message.get("event") == "pulse")
        await ApiToken.objects.all().aupdate(revoked_at=timezone.now())
        messages = await stream.until(lambda message: message.get("event") == "reload")

    assert messages[-1]["data"] == "signed out"


@pytest.mark.parametrize("way", ["token revoked", "token expired", "user deactivated", "signed out", "role taken away"])
async def test_a_stream_ends_as_soon_as_its_viewer_may_not_see_any_more(way: str) -> None:
    client, _, _ = await arranged()
    staying = await sync_to_async(signed_in)(Scope.READ)
    token = await ApiToken.objects.select_related("user").aget(name="write-user")

    async with opened(client, DETAIL) as stream, opened(staying, DETAIL) as other:
        await asyncio.gather(stream.until(shows('id="events"')), other.until(shows('id="events"')))
        if way == "token revoked":
            await sync_to_async(token_revoke)(token=token, now=timezone.now(), actor="test")
        elif way == "token expired":
            await ApiToken.objects.filter(pk=token.pk).aupdate(expires_at=timezone.now())
        elif way == "user deactivated":
            await User.objects.filter(pk=token.user_id).aupdate(is_active=False)
        elif way == "signed out":
            await sync_to_async(client.post)("/signout/")
        else:
            gone = {"team": "default", "username": token.user.username, "actor": "test", "now": timezone.now()}
            await sync_to_async(member_delete)(**gone)
        messages = await stream.until(lambda message: message.get("event") == "reload")
        assert messages[-1]["data"] == "signed out"
        await sync_to_async(scenes.service)("ranker")
        rollout = await Rollout.objects.select_related("from_revision", "to_revision").aget()
        await sync_to_async(scenes.move)(rollout, reason_message="for who stays")
        await other.until(shows("For who stays"))


async def test_many_streams_ask_the_database_as_little_as_one() -> None:
    client, _, rollout = await arranged()

    async with opened(client, DETAIL) as first, opened(client, DETAIL) as second:
        await asyncio.gather(first.until(shows('id="events"')), second.until(shows('id="events"')))
        await sync_to_async(scenes.move)(rollout, reason_message="news for both")
        await asyncio.gather(first.until(shows("News for both")), second.until(shows("News for both")))
        assert sum(task.get_name() == "feed" for task in asyncio.all_tasks()) == 1


@pytest.mark.parametrize(
    ("path", "is_signed_in", "status"),
    [
        pytest.param(DETAIL, False, 302, id="without a session it leads to the sign-in page"),
        pytest.param("/services/default/nothing/stream", True, 404, id="an unknown service"),
    ],
)
async def test_a_stream_is_guarded_like_its_page(path: str, is_signed_in: bool, status: int) -> None:
    client = await sync_to_async(signed_in)() if is_signed_in else Client()
    await sync_to_async(scenes.service)()

    async with opened(client, path) as stream:
        assert stream.status == status
