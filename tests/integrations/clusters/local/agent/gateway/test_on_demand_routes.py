"""Routes of services at rest in a real Envoy: it has those that requests need, never many, and no request is lost."""

import asyncio
import random

import httpx
import pytest

from integrations.clusters.local.agent.gateway import routing
from integrations.clusters.local.envoy.resources import Kind
from integrations.clusters.local.envoy.values import Backend, RevisionEndpoints, ServiceRoute
from tests._support.gateway import Gateway

SERVICES = 60
MOST, LEFT = 20, 10


def at_rest(number: int) -> ServiceRoute:
    name = f"m-{number}"
    return ServiceRoute("default", name, (Backend(f"{name}-00001", "1", 100, pooled=True, pool="default/warm"),))


async def ask_all(gateway: Gateway, seed: int) -> list[int]:
    """Ask each service twice, one after the other, and return the codes of the answers."""
    order = random.Random(seed).sample(range(SERVICES), SERVICES) * 2
    async with httpx.AsyncClient(timeout=30) as client:
        paths = (f"/serving/default/m-{number}/v2/models/m-{number}/infer" for number in order)
        return [(await gateway.http(client, path, {})).status_code for path in paths]


async def test_routes_that_envoy_has_for_long_are_dropped_and_come_again(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routing, "_MOST_ON_DEMAND", MOST)
    monkeypatch.setattr(routing, "_LEFT_ON_DEMAND", LEFT)
    (own,) = gateway.routing.revisions
    pool = RevisionEndpoints("default", "warm", own.endpoints, pooled=True)
    await gateway.push(services=tuple(map(at_rest, range(SERVICES))), revisions=(pool,))
    discovery = gateway.router._discovery
    assert discovery.has_on_demand(Kind.ROUTES) == []

    clients = asyncio.gather(*(ask_all(gateway, seed) for seed in range(4)))
    most = 0
    while not clients.done():
        await asyncio.sleep(0.05)  # as the agent's heartbeat
        most = max(most, len(discovery.has_on_demand(Kind.ROUTES)))
        gateway.router.forget()
    assert {code for codes in await clients for code in codes} == {200}
    assert most > MOST
    async with asyncio.timeout(20):
        while len(discovery._stream.known[Kind.ROUTES].asked) > MOST:  # Envoy has ended its subscriptions
            gateway.router.forget()
            await asyncio.sleep(0.02)
    assert max(gateway.router._renderer.renamed.values()) > 1

    assert await gateway.grpc("ModelInfer", {"fairlead-service": "default/m-1"}) == (0, "")
    last = discovery.has_on_demand(Kind.ROUTES)[-1]
    assert last.partition("~")[0] == "default/m-1"
    await gateway.push(services=gateway.routing.services[1:])
    assert await gateway.grpc("ModelInfer", {"fairlead-service": "default/m-1"}) == (0, "")
