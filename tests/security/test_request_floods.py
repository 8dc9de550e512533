"""Floods of requests: each client has its limit, other clients keep theirs, and refusals write nothing."""

import json
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from accounts.services import token_create, user_get_or_create
from control_plane.handler import ControlPlaneHandler
from tests import scenes

pytestmark = pytest.mark.django_db
BURST = 10
ELSEWHERE = "192.0.2.7"


@pytest.fixture(autouse=True)
def _small_limits(settings: Settings) -> None:
    settings.TOKEN_REQUESTS_PER_MINUTE = 1
    settings.ANONYMOUS_REQUESTS_PER_MINUTE = 1
    settings.SIGNIN_FAILURES_PER_MINUTE = 1


def bearer(name: str) -> dict[str, str]:
    user = user_get_or_create(username=name, now=timezone.now())
    made = token_create(
        user=user, name=name, scope=Scope.READ, lifetime=timedelta(hours=1), now=timezone.now(), actor="test"
    )
    return {"Authorization": f"Bearer {made.secret}"}


def statuses(path: str, count: int = BURST + 1, **request: object) -> list[int]:
    return [Client().get(path, **request).status_code for _ in range(count)]  # type: ignore[arg-type]


def test_a_token_has_its_limit_and_another_keeps_its_own() -> None:
    alice, bob = bearer("alice"), bearer("bob")
    assert statuses("/api/v1/whoami", headers=alice) == [200] * BURST + [429]
    refused = Client().get("/api/v1/whoami", headers=alice)
    assert refused.json()["error"]["code"] == "throttled"
    assert "token 'alice' sends more than 1 requests a minute; try again in" in refused.json()["error"]["message"]
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert (refused.headers["RateLimit-Limit"], refused.headers["RateLimit-Remaining"]) == ("10", "0")
    assert Client().get("/api/v1/whoami", headers=bob).headers["RateLimit-Remaining"] == "9"


def test_a_page_over_the_limit_is_a_page() -> None:
    browser = Client()
    browser.post("/signin/", {"token": bearer("alice")["Authorization"].removeprefix("Bearer ")})
    answers = [browser.get("/teams/") for _ in range(BURST + 1)]
    assert [each.status_code for each in answers] == [200] * BURST + [429]
    assert "Too many requests" in answers[-1].content.decode()
    assert "Retry-After" in answers[-1].headers


def test_anonymous_clients_have_a_limit_by_address() -> None:
    assert statuses("/api/v1/schema/", REMOTE_ADDR=ELSEWHERE) == [200] * BURST + [429]
    assert statuses("/api/v1/schema/", 1, REMOTE_ADDR="192.0.2.8") == [200]
    assert Client().get("/signin/", REMOTE_ADDR=ELSEWHERE).status_code == 429


@pytest.mark.parametrize("lie", [{"Authorization": "Bearer flt_nobody"}, {"Cookie": "sessionid=nobody"}])
@pytest.mark.parametrize("path", ["/api/v1/schema/", "/metrics", "/signin/"])
def test_credentials_that_nothing_verifies_change_nothing(path: str, lie: dict[str, str]) -> None:
    assert statuses(path, headers=lie, REMOTE_ADDR=ELSEWHERE) == [200] * BURST + [429]


def test_a_network_of_ipv6_addresses_is_one() -> None:
    found = [Client().get("/api/v1/schema/", REMOTE_ADDR=f"2001:db8::{n:x}").status_code for n in range(BURST + 1)]
    assert found == [200] * BURST + [429]
    assert statuses("/api/v1/schema/", 1, REMOTE_ADDR="2001:db8:0:1::1") == [200]


def test_guessed_tokens_are_refused_by_address_and_a_valid_one_there_is_not() -> None:
    found = [
        Client().get("/api/v1/whoami", headers={"Authorization": f"Bearer flt_{n}"}).status_code
        for n in range(BURST + 2)
    ]
    assert found == [401] * BURST + [429] * 2
    assert Client().get("/api/v1/whoami", headers=bearer("alice")).status_code == 200


def test_failed_sign_ins_end_and_so_do_their_audit_entries(settings: Settings) -> None:
    settings.ANONYMOUS_REQUESTS_PER_MINUTE = 0
    found = [Client().post("/signin/", {"token": f"flt_{n}"}).status_code for n in range(BURST + 5)]
    assert found == [401] * BURST + [429] * 5
    assert AuditEntry.objects.filter(action="session.refuse").count() <= BURST


def test_health_is_never_refused_and_zero_is_no_limit(settings: Settings) -> None:
    assert statuses("/healthz", 30) == [200] * 30
    settings.ANONYMOUS_REQUESTS_PER_MINUTE = 0
    assert statuses("/api/v1/schema/", 30) == [200] * 30


def test_a_stream_counts_as_its_page(settings: Settings) -> None:
    scenes.service()
    settings.TOKEN_REQUESTS_PER_MINUTE = 3000
    browser = Client()
    browser.post("/signin/", {"token": bearer("alice")["Authorization"].removeprefix("Bearer ")})
    assert browser.get("/stream").headers["RateLimit-Remaining"] == "499"


def test_a_flood_of_the_api_is_refused_before_django(settings: Settings) -> None:
    async def ask() -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        async def receive() -> dict[str, Any]:
            raise AssertionError("nothing of the request is read")

        scope = {"type": "http", "method": "GET", "path": "/api/v1/schema/", "headers": [], "client": (ELSEWHERE, 1)}
        await ControlPlaneHandler().handle(scope, receive, send)
        return sent

    assert statuses("/api/v1/schema/", REMOTE_ADDR=ELSEWHERE)[-1] == 429
    start, body = async_to_sync(ask)()
    assert start["status"] == 429
    assert {name for name, _ in start["headers"]} >= {b"retry-after", b"ratelimit-limit"}
    assert json.loads(body["body"])["error"]["code"] == "throttled"
