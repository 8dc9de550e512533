"""Streams of pages: the admin of another team gets not one byte, and one function makes them all."""

import gc
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from asgiref.sync import async_to_sync
from django.http import HttpResponseBase, StreamingHttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.services import teams, token_create, user_get_or_create
from events.services.stream_seats import SEATS
from events.web import live_updates
from recordings.services.recordings import RecordingOrder, recording_start
from tests import scenes

pytestmark = pytest.mark.django_db

PLATFORM = Path(live_updates.__file__).parents[2]
MAKERS = {"events/web/live_updates.py", "common/http/downloads.py"}
"""Who makes answers that go on: the streams of pages, and files, which views send after `require`."""
SHARED = {"home-stream", "service-list-stream"}
"""Streams that show everybody what he may see."""


def everything() -> dict[str, str]:
    """Make things of team red and of the installation; returns the address of each stream of one of them."""
    now = timezone.now()
    live = scenes.service()
    rollout = scenes.rollout(live)
    for team in ("red", "blue"):
        teams.team_create(name=team, actor="test", now=now)
    teams.ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=now)
    teams.ownership_set(team="red", kind=Owned.MODEL, name="digits", actor="test", now=now)
    order = RecordingOrder("The clients agreed to it in writing.")
    recording = recording_start(namespace="default", name="digits", order=order, actor="test", now=now)
    service = {"namespace": "default", "name": "digits"}
    version = {"model": "digits", "number": 1}
    parts: dict[str, dict[str, object]] = {
        "service-stream": service,
        "rollout-stream": {**service, "rollout_id": rollout.pk},
        "recording-stream": {**service, "recording_id": recording.pk},
        "replay-stream": {**service, "replay_id": scenes.replay(recording).pk},
        "build-stream": {**version, "build_id": scenes.build().pk},
        "tuning-stream": {**version, "tuning_id": scenes.tuning().pk},
        "cluster-gpus-stream": {"name": "local"},
    }
    return {name: reverse(f"deployments:{name}", kwargs=kwargs) for name, kwargs in parts.items()}


def admin_of(team: str) -> Client:
    """Return a browser that is signed in as an admin of one team alone."""
    now = timezone.now()
    user_get_or_create(username="root", now=timezone.now())  # makes the default team
    user = user_get_or_create(username="dora", default_role=None, now=timezone.now())
    teams.member_set(team=team, username="dora", role=Role.ADMIN, actor="test", now=now)
    lifetime = timedelta(hours=1)
    made = token_create(user=user, name="dora", scope=Scope.ADMIN, lifetime=lifetime, now=now, actor="test")
    browser = Client()
    browser.post("/signin/", {"token": made.secret})
    return browser


def test_another_teams_admin_gets_403_or_404_and_no_byte_of_any_stream() -> None:
    addresses = everything()
    browser = admin_of("blue")
    got = {name: cast(HttpResponseBase, browser.get(address)) for name, address in addresses.items()}
    assert {name: answer.status_code for name, answer in got.items() if answer.status_code not in (403, 404)} == {}
    assert [name for name, answer in got.items() if answer.streaming] == []


def test_another_team_does_not_learn_which_clusters_there_are() -> None:
    """A name that is not there answers another team as one that is."""
    addresses = everything()
    browser = admin_of("blue")
    there, gone = addresses["cluster-gpus-stream"], reverse("deployments:cluster-gpus-stream", kwargs={"name": "gone"})
    assert browser.get(there).status_code == browser.get(gone).status_code == 403


def test_who_may_see_a_stream_gets_it() -> None:
    answer = admin_of("default").get(everything()["cluster-gpus-stream"])
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")


def test_a_token_has_so_many_streams_and_one_that_ends_makes_room(settings: Settings) -> None:
    settings.STREAMS_PER_TOKEN, settings.STREAMS_PER_PROCESS = 2, 0
    scenes.service()
    browser = admin_of("default")
    opened = [cast(StreamingHttpResponse, browser.get("/stream")) for _ in range(2)]
    refused = browser.get("/stream")
    assert refused.status_code == 429
    assert "2 live pages are open with your token; close some" in " ".join(refused.content.decode().split())
    assert refused.headers["Retry-After"] == "30"
    async_to_sync(begin_and_end)(opened.pop())
    opened.append(cast(StreamingHttpResponse, browser.get("/stream")))
    assert [each.status_code for each in opened] == [200, 200]
    del opened
    gc.collect()
    assert browser.get("/stream").status_code == 200, "streams that were dropped before their first byte make room"


def test_a_process_has_so_many_streams_of_all_tokens(settings: Settings) -> None:
    gc.collect()
    settings.STREAMS_PER_TOKEN, settings.STREAMS_PER_PROCESS = 20, len(SEATS) + 2
    scenes.service()
    browsers = [admin_of("default") for _ in range(3)]
    opened = [browser.get("/stream") for browser in browsers]
    assert [each.status_code for each in opened] == [200, 200, 429]
    assert "live pages open, as many as it keeps" in opened[-1].content.decode()


async def begin_and_end(response: StreamingHttpResponse) -> None:
    """Read the first bytes of a stream, and leave it."""
    content = aiter(response.streaming_content)
    await anext(content)
    await content.aclose()  # type: ignore[attr-defined]


def test_every_stream_is_asked_for_above() -> None:
    streams = {
        str(pattern.name)
        for pattern in _patterns(get_resolver())
        if pattern.callback.__module__ == live_updates.__name__ or str(pattern.name).endswith("stream")
    }
    assert streams - SHARED == set(everything())


def test_answers_that_go_on_are_made_in_two_places_only() -> None:
    made = re.compile(r"\b(StreamingHttpResponse|FileResponse)\b")
    found = {str(file.relative_to(PLATFORM)) for file in PLATFORM.rglob("*.py") if made.search(file.read_text())}
    assert found == MAKERS


def _patterns(resolver: URLResolver) -> Iterator[URLPattern]:
    for each in resolver.url_patterns:
        if isinstance(each, URLResolver):
            yield from _patterns(each)
        else:
            yield each
