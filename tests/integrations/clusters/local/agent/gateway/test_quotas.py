"""Teams, keys and services whose quota is used up are refused by a real Envoy until the month ends, others are not."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from integrations.clusters.base import Access
from integrations.clusters.local.envoy import limits as envoy_limits
from tests._support.gateway import GOOD, Gateway, running_gateway, token
from usage.domain.month import Month

PATH = "/serving/default/digits/v2/models/digits/infer"
GRPC_SERVICE = {"fairlead-service": "default/digits"}
RESOURCE_EXHAUSTED = 8


def key(team: str, token_id: str = "id-good", name: str = "ci") -> dict[str, str]:
    return {"authorization": "Bearer " + token(replace(GOOD, key=name, team=team, token_id=token_id))}


async def exhaust(gateway: Gateway, *teams: str, keys: tuple[str, ...] = (), services: tuple[str, ...] = ()) -> None:
    used_up = {"exhausted": teams, "exhausted_keys": keys, "exhausted_services": services}
    await gateway.push(keys=replace(gateway.routing.keys, **used_up))


async def test_a_used_quota_refuses_the_teams_keys_until_the_month_ends(gateway: Gateway) -> None:
    await exhaust(gateway, "fraud", "vision")
    async with httpx.AsyncClient(timeout=20) as client:
        asked_at = datetime.now(UTC)
        refused = await gateway.http(client, PATH, key("fraud"))
        left = (Month.of(asked_at).end - asked_at).total_seconds()
        assert (refused.status_code, refused.json().keys()) == (429, {"error"})
        assert "quota" in refused.json()["error"]
        assert left - 30 < int(refused.headers["retry-after"]) <= left + 1
        assert (await gateway.http(client, PATH, key("blue"))).status_code == 200
        assert (await gateway.http(client, PATH, {})).status_code == 200
        forged = key("blue") | {"fairlead-team": "fraud"}
        assert (await gateway.http(client, PATH, forged)).status_code == 200
        assert (await gateway.http(client, PATH, key("fraud", "id-revoked"))).status_code == 401


async def test_grpc_callers_get_resource_exhausted(gateway: Gateway) -> None:
    await exhaust(gateway, "fraud")
    code, details = await gateway.grpc("ModelInfer", key("fraud") | GRPC_SERVICE)
    assert code == RESOURCE_EXHAUSTED
    assert "quota" in details
    assert (await gateway.grpc("ModelInfer", key("blue") | GRPC_SERVICE))[0] == 0


async def test_a_service_with_callers_refuses_in_the_same_way_and_opens_again(gateway: Gateway) -> None:
    await gateway.push(services=(replace(gateway.routing.services[0], access=Access(teams=("fraud",))),))
    for teams, status in ((("fraud",), 429), ((), 200)):
        await exhaust(gateway, *teams)
        async with httpx.AsyncClient(timeout=20) as client:
            assert (await gateway.http(client, PATH, key("fraud"))).status_code == status
            assert (await gateway.http(client, PATH, key("blue"))).status_code == 403


async def test_a_used_quota_drops_no_request(gateway: Gateway) -> None:
    done = asyncio.Event()

    async def send(team: str) -> Counter[int]:
        found: Counter[int] = Counter()
        async with httpx.AsyncClient(timeout=20) as client:
            while not done.is_set():
                found[(await gateway.http(client, PATH, key(team))).status_code] += 1
        return found

    sending = [asyncio.create_task(send(team)) for team in ("fraud", "blue")]
    for number in range(6):
        await exhaust(gateway, *(("fraud",) if number % 2 == 0 else ()))
    done.set()
    used_up, other = await asyncio.gather(*sending)
    assert used_up.keys() <= {200, 429}
    assert other.keys() == {200}


async def test_the_used_quota_of_a_key_is_of_all_its_tokens_at_any_service_and_of_no_other_key(
    gateway: Gateway,
) -> None:
    await exhaust(gateway, keys=("nightly", "other"))
    async with httpx.AsyncClient(timeout=20) as client:
        for headers in (key("fraud", name="nightly"), key("fraud", "id-rotated", "nightly")):
            for path in (PATH, PATH.replace("digits/", "digits-preview/", 1), "/serving/default/digits/v2"):
                refused = await gateway.http(client, path, headers)
                assert (refused.status_code, "this key" in refused.json()["error"]) == (429, True)
                assert int(refused.headers["retry-after"]) > 0
        assert (await gateway.http(client, PATH, key("fraud", "id-revoked", "nightly"))).status_code == 401
        claimed = {"fairlead-caller": "nightly", "fairlead-key": "id-good"}
        for headers in (key("fraud"), key("fraud") | claimed, claimed, key("fraud", name="nightly2"), {}):
            assert (await gateway.http(client, PATH, headers)).status_code == 200
    code, details = await gateway.grpc("ModelInfer", key("fraud", name="nightly") | GRPC_SERVICE)
    assert (code, "this key" in details) == (RESOURCE_EXHAUSTED, True)
    assert (await gateway.grpc("ModelInfer", key("fraud") | GRPC_SERVICE))[0] == 0


async def test_the_used_quota_of_a_service_refuses_every_way_to_name_it_and_not_its_preview(gateway: Gateway) -> None:
    by_host, path = {"host": "digits.default.example"}, PATH.removeprefix("/serving/default/digits")
    ways: list[tuple[str, dict[str, str]]] = [
        (PATH, {}),
        (f"{PATH}?x=1", {}),
        (path, by_host),
        (path, {"host": "DIGITS.default:8080"}),
        (path, {"host": "digits/x.default"}),
        (path, {"host": "x.default/digits"}),
        (path, {"fairlead-service": "default/digits"}),
        (path, {"fairlead-service": "default/digits/"}),
        (path, {"fairlead-service": "default/digits/more", **by_host}),
        ("/serving/default/vision/../digits" + path, {}),
        ("//serving//default/./digits" + path, {}),
        ("/serving/default/%64igits" + path, {}),
    ]
    others = [(PATH.replace("digits/", "digits-preview/", 1), {}), (path, {"host": "digits-preview.default.example"})]
    async with httpx.AsyncClient(timeout=20) as client:

        async def statuses(of: list[tuple[str, dict[str, str]]], caller: dict[str, str]) -> list[int]:
            return [(await gateway.http(client, path, headers | caller)).status_code for path, headers in of]

        before = await statuses(ways, {})
        assert before.count(200) >= 7
        await exhaust(gateway, services=("default/digits", "default/other"))
        for caller in ({}, key("fraud"), key("blue", name="other")):
            for had, has in zip(before, await statuses(ways, caller), strict=True):
                assert has != 200
                assert has == 429 or had != 200
            assert await statuses(others, caller) == [200, 200]
        refused = await gateway.http(client, PATH, {})
        assert "this service" in refused.json()["error"]
        assert int(refused.headers["retry-after"]) > 0
        assert (await gateway.http(client, PATH, key("fraud", "id-revoked"))).status_code == 401
    code, details = await gateway.grpc("ModelInfer", GRPC_SERVICE)
    assert (code, "this service" in details) == (RESOURCE_EXHAUSTED, True)
    assert (await gateway.grpc("ModelInfer", {"fairlead-service": "default/digits-preview"}))[0] == 0


async def test_a_gateway_that_a_former_release_started_refuses_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its listener knows no reason but the quota of a team."""
    of_teams = [next(envoy_limits.refusals_for_a_time())]
    monkeypatch.setattr(envoy_limits, "refusals_for_a_time", lambda: of_teams)
    async with running_gateway(tmp_path) as gateway, httpx.AsyncClient(timeout=20) as client:
        await exhaust(gateway, "vision", keys=("nightly",), services=("default/digits-preview",))
        assert (await gateway.http(client, PATH, key("vision"))).status_code == 429
        assert (await gateway.http(client, PATH, key("fraud", name="nightly"))).status_code == 403
        assert (await gateway.http(client, PATH.replace("digits/", "digits-preview/", 1), {})).status_code == 403
        assert (await gateway.http(client, PATH, key("fraud"))).status_code == 200
