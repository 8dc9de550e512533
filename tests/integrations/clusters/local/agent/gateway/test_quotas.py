"""Keys of a team whose quota is used up are refused by a real Envoy until the month ends, and other callers are not."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import httpx

from integrations.clusters.base import Access
from tests._support.gateway import GOOD, Gateway, token
from usage.domain.month import Month

PATH = "/serving/default/digits/v2/models/digits/infer"
GRPC_SERVICE = {"fairlead-service": "default/digits"}
RESOURCE_EXHAUSTED = 8


def key(team: str, token_id: str = "id-good") -> dict[str, str]:
    return {"authorization": "Bearer " + token(replace(GOOD, team=team, token_id=token_id))}


async def exhaust(gateway: Gateway, *teams: str) -> None:
    await gateway.push(keys=replace(gateway.routing.keys, exhausted=teams))


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
