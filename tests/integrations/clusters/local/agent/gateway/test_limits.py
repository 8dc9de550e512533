"""Limits of a service, of its callers, and of keys hold at a real Envoy, and leave other callers alone."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import grpc
import httpx
import pytest

from integrations.clusters.base import Access, Limits, RequestRate, TeamRate
from integrations.clusters.local.envoy import limits as envoy_limits
from tests._support.gateway import GOOD, Gateway, running_gateway, token

PATH = "/serving/default/digits/v2/models/digits/infer"
GRPC_SERVICE = {"fairlead-service": "default/digits"}
RESOURCE_EXHAUSTED = 8
AT_MOST = 5.0
"""Seconds that a burst may take on a busy machine; its bucket refills meanwhile."""


def key(name: str, team: str = "fraud") -> dict[str, str]:
    return {"authorization": "Bearer " + token(replace(GOOD, key=name, token_id=f"id-{name}", team=team))}


async def limit(
    gateway: Gateway, *rates: RequestRate, teams: tuple[TeamRate, ...] = (), access: Access | None = None, **limits: int
) -> None:
    """Limit the service, keys and teams; whether its callers need a key is `access`."""
    service = replace(gateway.routing.services[0], limits=Limits(**limits), access=access)
    await gateway.push(services=(service,), keys=replace(gateway.routing.keys, rates=rates, team_rates=teams))


async def burst(gateway: Gateway, headers: dict[str, str], number: int = 20, path: str = PATH) -> list[httpx.Response]:
    """Send requests at once; fails where they take so long that a limit could not show."""
    async with httpx.AsyncClient(timeout=20) as client, asyncio.timeout(AT_MOST):
        return await asyncio.gather(*(gateway.http(client, path, headers) for _ in range(number)))


def statuses(found: list[httpx.Response]) -> Counter[int]:
    return Counter(each.status_code for each in found)


async def test_the_limit_of_a_service_is_of_all_callers_together(gateway: Gateway) -> None:
    await limit(gateway, requests_per_second=2)
    found = await burst(gateway, key("ci")) + await burst(gateway, {})
    assert 2 <= statuses(found)[200] <= 2 + 2 * 2 * AT_MOST
    assert statuses(found)[429] >= 40 - 2 - 2 * 2 * AT_MOST


async def test_a_refusal_is_a_sentence_with_the_limit_and_when_to_try_again(gateway: Gateway) -> None:
    await limit(gateway, requests_per_second=2)
    found = await burst(gateway, {})
    refused = next(each for each in found if each.status_code == 429)
    assert refused.json().keys() == {"error"}
    assert "Retry-After" in refused.json()["error"]
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["ratelimit-limit"].split(",")[0] == "2"
    assert refused.headers["ratelimit-remaining"] == "0"
    assert 0 <= int(refused.headers["ratelimit-reset"]) <= 1
    served = next(each for each in found if each.status_code == 200)
    assert served.headers["ratelimit-limit"].split(",")[0] == "2"
    assert "retry-after" not in served.headers
    assert not any(name.startswith("x-ratelimit") for each in found for name in each.headers)


async def test_without_limits_no_answer_has_their_headers(gateway: Gateway) -> None:
    found = await burst(gateway, key("ci"))
    assert statuses(found) == {200: 20}
    assert not any("ratelimit" in name for each in found for name in each.headers)


async def test_the_flood_of_one_caller_takes_nothing_from_another(gateway: Gateway) -> None:
    await limit(gateway, access=Access(), requests_per_second=1000, caller_requests_per_second=3)
    assert statuses(await burst(gateway, key("greedy"), 60))[429] > 40
    assert statuses(await burst(gateway, key("quiet"), 3)) == {200: 3}


async def test_callers_without_a_valid_key_are_one_caller_whatever_they_send(gateway: Gateway) -> None:
    await limit(gateway, caller_requests_per_second=3)
    begun = time.monotonic()
    found = [
        await burst(gateway, {"authorization": f"Bearer made-up-{n}", "fairlead-caller": f"c{n}"}, 5) for n in range(12)
    ]
    assert sum(statuses(each)[200] for each in found) <= 3 + 3 * (time.monotonic() - begun)
    assert statuses(await burst(gateway, key("quiet"), 3)) == {200: 3}


async def test_refused_callers_use_up_nothing(gateway: Gateway) -> None:
    await limit(gateway, access=Access(), requests_per_second=3)
    assert statuses(await burst(gateway, {}, 40)) == {401: 40}
    assert statuses(await burst(gateway, key("ci"), 3)) == {200: 3}


async def test_the_limit_of_a_key_is_over_all_services_and_not_of_its_tokens(gateway: Gateway) -> None:
    await limit(gateway, RequestRate("nightly", 3))
    other = {"authorization": "Bearer " + token(replace(GOOD, key="nightly", token_id="id-rotated"))}
    preview = PATH.replace("default/digits/", "default/digits-preview/")
    found = await burst(gateway, key("nightly")) + await burst(gateway, other, path=preview)
    assert statuses(found)[200] <= 3 + 2 * 3 * AT_MOST
    assert statuses(found)[429] >= 40 - 3 - 2 * 3 * AT_MOST
    refused = next(each for each in found if each.status_code == 429)
    assert refused.headers["ratelimit-limit"].split(",")[0] == "3"
    assert statuses(await burst(gateway, key("other"))) == {200: 20}
    assert statuses(await burst(gateway, {})) == {200: 20}


async def test_the_limit_of_the_service_is_the_one_in_the_headers_and_that_of_the_key_where_it_refuses(
    gateway: Gateway,
) -> None:
    await limit(gateway, RequestRate("ci", 5), requests_per_second=50)
    found = await burst(gateway, key("ci"))
    assert {(each.status_code, each.headers["ratelimit-limit"]) for each in found} == {(200, "50"), (429, "5")}


async def test_grpc_calls_have_the_same_limits(gateway: Gateway) -> None:
    await limit(gateway, caller_requests_per_second=1)
    calls = (gateway.grpc("ModelInfer", key("ci") | GRPC_SERVICE) for _ in range(12))
    async with asyncio.timeout(AT_MOST):
        found = await asyncio.gather(*calls)
    codes = Counter(code for code, _ in found)
    assert codes[RESOURCE_EXHAUSTED] >= 12 - 1 - AT_MOST
    assert codes[0] >= 1
    assert codes.keys() == {0, RESOURCE_EXHAUSTED}
    assert all("too many requests" in details for code, details in found if code)


async def test_a_changed_limit_drops_no_request(gateway: Gateway) -> None:
    await limit(gateway, caller_requests_per_second=1000)
    done = asyncio.Event()

    async def send() -> Counter[int]:
        found: Counter[int] = Counter()
        async with httpx.AsyncClient(timeout=20) as client:
            while not done.is_set():
                found[(await gateway.http(client, PATH, key("ci"))).status_code] += 1
        return found

    sending = asyncio.create_task(send())
    for number in range(5):
        await limit(gateway, RequestRate("ci", 100_000 + number), caller_requests_per_second=100_000 + number)
    done.set()
    assert (await sending).keys() == {200}
    await limit(gateway, caller_requests_per_second=1)
    assert statuses(await burst(gateway, key("ci")))[429] > 0
    await limit(gateway)
    assert statuses(await burst(gateway, key("ci"))) == {200: 20}


async def test_the_limit_of_a_team_is_of_all_its_keys_together(gateway: Gateway) -> None:
    await limit(gateway, teams=(TeamRate("fraud", 2),), access=Access())
    found = await burst(gateway, key("one"), 15) + await burst(gateway, key("two"), 15)
    assert 2 <= statuses(found)[200] <= 2 + 2 * 2 * AT_MOST
    assert all("ratelimit-limit" in each.headers for each in found)
    forged = key("three", team="vision") | {"fairlead-team": "fraud"}
    assert statuses(await burst(gateway, forged)) == {200: 20}


async def test_larger_bodies_reach_no_replica_over_any_protocol(gateway: Gateway) -> None:
    await limit(gateway, request_bytes=100_000)
    url = f"http://127.0.0.1:{gateway.port}{PATH}"

    async def chunks(number: int) -> AsyncIterator[bytes]:
        for _ in range(number):
            yield b"x" * 10_000

    async with httpx.AsyncClient(timeout=20) as client:
        gateway.asked.clear()
        refused = [await client.post(url, content=b"x" * 100_001), await client.post(url, content=chunks(11))]
        host, path = {"host": "digits.default.example"}, f"http://127.0.0.1:{gateway.port}/v2/models/digits/infer"
        refused.append(await client.post(path, content=b"x" * 100_001, headers=host))
        assert [each.status_code for each in refused] == [413, 413, 413]
        assert all("spec.limits.requestBytes" in each.json()["error"] for each in refused)
        code, details = await gateway.grpc("ModelInfer", GRPC_SERVICE, b"x" * 100_001)
        assert (code, "spec.limits.requestBytes" in details) == (RESOURCE_EXHAUSTED, True)
        assert gateway.asked == []
        assert (await client.post(url, content=b"x" * 100_000)).status_code == 200
        assert (await client.post(url, content=chunks(10))).status_code == 200
        assert (await gateway.grpc("ModelInfer", GRPC_SERVICE, b"x" * 99_000))[0] == 0
        await limit(gateway)
        assert (await client.post(url, content=b"x" * 3_000_000)).status_code == 200
        nothing = await client.post(f"http://127.0.0.1:{gateway.port}/serving/default/x/v2", content=b"x" * 1_000_000)
        assert nothing.status_code == 404


async def test_a_stream_answers_before_it_ends_beside_a_limit_of_bodies(gateway: Gateway) -> None:
    await limit(gateway, request_bytes=1000)
    method = "/inference.GRPCInferenceService/ModelStreamInfer"
    async with grpc.aio.insecure_channel(f"127.0.0.1:{gateway.port}") as channel:
        call = channel.stream_unary(method)(metadata=tuple(GRPC_SERVICE.items()), timeout=20)
        await call.write(b"x" * 100_000)
        assert await call == b""


async def test_an_envoy_that_the_release_before_started_takes_limits_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its listener renames the headers by itself, and has no filter of bodies."""
    _, callers, service, _ = envoy_limits.filters()
    renaming = envoy_limits.of_service(Limits(1))[envoy_limits.HEADERS_FILTER]
    static = {**renaming, "@type": renaming["@type"].removesuffix("PerRoute")}
    former = [{"name": envoy_limits.HEADERS_FILTER, "typed_config": static}, callers, service]
    monkeypatch.setattr(envoy_limits, "filters", lambda: former)
    async with running_gateway(tmp_path) as gateway:
        await limit(gateway, RequestRate("ci", 1), requests_per_second=2, request_bytes=10)
        found = await burst(gateway, {})
        assert statuses(found)[429] > 0
        assert {each.headers["ratelimit-limit"].split(",")[0] for each in found} == {"2"}
        assert statuses(await burst(gateway, key("ci")))[429] >= 20 - 1 - AT_MOST
