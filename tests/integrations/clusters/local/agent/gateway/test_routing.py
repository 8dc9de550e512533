"""The order of updates, seen from Envoy's side: a client of the discovery service that asks as Envoy does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from common.errors import Unavailable
from integrations.clusters.base import CallerKeys
from integrations.clusters.local.agent.gateway.discovery import Discovery
from integrations.clusters.local.agent.gateway.routing import Router, Routing
from integrations.clusters.local.envoy import access, limits
from integrations.clusters.local.envoy.api import DeltaDiscoveryRequest, DeltaDiscoveryResponse, decoded
from integrations.clusters.local.envoy.resources import Kind
from integrations.clusters.local.envoy.values import Backend, Endpoint, RevisionEndpoints, ServiceRoute

OLD, NEW = Endpoint(1001, 1002), Endpoint(2001, 2002)
_METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
_NAMED_IN = {Kind.CLUSTERS: Kind.ENDPOINTS, Kind.SCOPES: Kind.ROUTES}


class FakeEnvoy:
    """Asks for filters, clusters and scopes, then for what the latter two name, and acknowledges.

    Attributes:
        has: what it has taken up, by kind and name, and with which version.
        seen: what it had after each message that changed something that the tests look at.
        sent: kind and names of each message.
        deaf_to: a kind that it does not answer. refuses: a kind that it refuses.
        dislikes: a resource for which it refuses the message.
    """

    def __init__(self) -> None:
        self.has: dict[Kind, dict[str, dict[str, Any]]] = {kind: {} for kind in Kind}
        self.versions: dict[Kind, dict[str, str]] = {kind: {} for kind in Kind}
        self.seen: list[str] = []
        self.sent: list[tuple[Kind, list[str]]] = []
        self.deaf_to: Kind | None = None
        self.refuses: Kind | None = None
        self.dislikes = ""
        self._requests: asyncio.Queue[Any] = asyncio.Queue()

    async def run(self, discovery: Discovery) -> None:
        """Ask until cancelled, with the versions it has; it may run again."""
        self._requests = asyncio.Queue()
        self._ask(
            Kind.EXTENSIONS,
            resource_names_subscribe=[*access.SENT, *limits.SENT],
            initial_resource_versions=self.versions[Kind.EXTENSIONS],
        )
        for kind in (Kind.CLUSTERS, Kind.SCOPES):
            self._ask(kind, initial_resource_versions=self.versions[kind])
            named = _NAMED_IN[kind]
            if self.has[named]:
                subscribed = list(self.has[named])
                self._ask(named, resource_names_subscribe=subscribed, initial_resource_versions=self.versions[named])
        async with grpc.aio.insecure_channel(f"unix:{discovery.socket}") as channel:
            ask = channel.stream_stream(
                _METHOD, DeltaDiscoveryRequest.SerializeToString, DeltaDiscoveryResponse.FromString
            )
            async for message in ask(self._asked()):
                self._take(message)

    async def _asked(self) -> AsyncIterator[Any]:
        while True:
            yield await self._requests.get()

    def _ask(self, kind: Kind, **fields: Any) -> None:
        self._requests.put_nowait(DeltaDiscoveryRequest(type_url=kind, **fields))

    def _take(self, message: Any) -> None:
        kind = Kind(message.type_url)
        self.sent.append((kind, sorted(each.name for each in message.resources)))
        if kind is self.deaf_to:
            return
        if kind is self.refuses or self.dislikes in [each.name for each in message.resources]:
            self._ask(kind, response_nonce=message.nonce, error_detail={"code": 13, "message": "no such thing"})
            return
        before = set(self.has[kind])
        for each in message.resources:
            assert each.resource.type_url == kind
            self.has[kind][each.name] = decoded(kind, each.resource.value)
            self.versions[kind][each.name] = each.version
        for name in message.removed_resources:
            del self.has[kind][name], self.versions[kind][name]
        self._ask(kind, response_nonce=message.nonce)
        if named := _NAMED_IN.get(kind):
            self._follow(named, self._names(kind, set(self.has[kind]) - before), set(message.removed_resources))
        self._note()

    def _names(self, kind: Kind, names: set[str]) -> set[str]:
        if kind is Kind.CLUSTERS:
            return names
        return {self.has[kind][name]["route_configuration_name"] for name in names}

    def _follow(self, named: Kind, new: set[str], gone: set[str]) -> None:
        gone &= set(self.has[named])
        for name in gone:
            del self.has[named][name], self.versions[named][name]
        if new or gone:
            self._ask(named, resource_names_subscribe=sorted(new), resource_names_unsubscribe=sorted(gone))

    def _note(self) -> None:
        ports: dict[int, str] = {}
        for name, assignment in self.has[Kind.ENDPOINTS].items():
            for each in assignment["endpoints"][0].get("lb_endpoints", []) if name.endswith("/http") else []:
                ports[each["endpoint"]["address"]["socket_address"]["port_value"]] = each["health_status"]
        text = str(self.has[Kind.ROUTES])
        routed = sorted(name for name in ("r-00001", "r-00002") if f"{name}/http" in text)
        found = f"endpoints {dict(sorted(ports.items()))}, routed {routed}"
        if not self.seen or self.seen[-1] != found:
            self.seen.append(found)


@pytest.fixture
async def discovery(tmp_path: Path) -> AsyncIterator[Discovery]:
    service = Discovery(tmp_path / "xds.sock")
    await service.start()
    yield service
    await service.close()


@pytest.fixture
def router(discovery: Discovery) -> Router:
    return Router(discovery, patience_s=30)


@pytest.fixture
def impatient(discovery: Discovery) -> Router:
    return Router(discovery, patience_s=0.5)


@pytest.fixture
async def envoy(discovery: Discovery) -> AsyncIterator[FakeEnvoy]:
    fake = FakeEnvoy()
    running = asyncio.create_task(fake.run(discovery))
    yield fake
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


def wanted(*, endpoints: dict[str, tuple[Endpoint, ...]], shares: dict[str, int]) -> Routing:
    backends = tuple(Backend(name, name[-1], share) for name, share in shares.items())
    return Routing(
        services=(ServiceRoute("default", "digits", backends),),
        revisions=tuple(RevisionEndpoints("default", name, found) for name, found in endpoints.items()),
    )


def draining(endpoint: Endpoint) -> Endpoint:
    return Endpoint(endpoint.http, endpoint.grpc, draining=True)


FIRST = wanted(endpoints={"r-00001": (OLD,)}, shares={"r-00001": 100})
BOTH = wanted(endpoints={"r-00001": (draining(OLD),), "r-00002": (NEW,)}, shares={"r-00002": 100})
SECOND = wanted(endpoints={"r-00002": (NEW,)}, shares={"r-00002": 100})


async def test_endpoints_come_before_routes_and_drain_after(router, envoy):
    await router.push(FIRST)
    envoy.seen.clear()
    await router.push(BOTH)
    assert envoy.seen == [
        "endpoints {1001: 'HEALTHY'}, routed ['r-00001']",  # the new clusters, without endpoints yet
        "endpoints {1001: 'HEALTHY', 2001: 'HEALTHY'}, routed ['r-00001']",
        "endpoints {1001: 'HEALTHY', 2001: 'HEALTHY'}, routed ['r-00002']",
        "endpoints {1001: 'DRAINING', 2001: 'HEALTHY'}, routed ['r-00002']",
    ]


async def test_clusters_go_last_with_their_endpoints(router, envoy):
    await router.push(BOTH)
    await router.push(SECOND)
    await router.push(SECOND)  # nothing waited for the clusters to go
    assert sorted(envoy.has[Kind.CLUSTERS]) == sorted(f"default/r-00002/{use}" for use in ("http", "meta", "grpc"))
    assert sorted(envoy.has[Kind.ENDPOINTS]) == sorted(envoy.has[Kind.CLUSTERS])
    assert list(router.since) == [("default", "r-00002")]


async def test_endpoint_of_a_dead_replica_goes_before_the_routes(router, envoy):
    await router.push(wanted(endpoints={"r-00001": (OLD, NEW)}, shares={"r-00001": 100}))
    envoy.sent.clear()
    await router.push(FIRST)
    assert envoy.sent == [(Kind.ENDPOINTS, [f"default/r-00001/{use}" for use in ("grpc", "http", "meta")])]


async def test_nothing_new_sends_nothing(router, envoy):
    await router.push(BOTH)
    envoy.sent.clear()
    await router.push(BOTH)
    assert envoy.sent == []


async def test_a_weight_sends_the_routes_of_its_service_alone(router, envoy):
    def among_others(share: int) -> Routing:
        names = [f"s-{number}" for number in range(100)]
        backends = {name: (Backend(f"{name}-00001", "1", 100),) for name in names}
        backends["s-7"] = (Backend("s-7-00001", "1", share), Backend("s-7-00002", "2", 100 - share))
        revisions = [
            RevisionEndpoints("default", each.revision, (OLD,)) for found in backends.values() for each in found
        ]
        services = tuple(ServiceRoute("default", name, found) for name, found in backends.items())
        return Routing(services, tuple(revisions))

    await router.push(among_others(90))
    envoy.sent.clear()
    await router.push(among_others(50))
    assert envoy.sent == [(Kind.ROUTES, ["default/s-7"])]


async def test_a_gateway_without_services_is_answered(router, envoy):
    """Else Envoy would wait for a first answer before it takes requests."""
    await router.push(Routing())
    assert envoy.sent == [
        (Kind.CLUSTERS, []),
        *((Kind.EXTENSIONS, [name]) for name in sorted((*access.SENT, *limits.SENT))),
        (Kind.SCOPES, []),
    ]


@pytest.mark.parametrize(("kind", "what"), [(Kind.ENDPOINTS, "endpoints"), (Kind.ROUTES, "routes")])
async def test_what_envoy_does_not_take_up_is_said_and_done_later(impatient, envoy, discovery, kind, what):
    await impatient.push(FIRST)
    envoy.deaf_to = kind
    with pytest.raises(Unavailable, match=f"did not take up the {what} within 0.5 s"):
        await impatient.push(BOTH)
    assert impatient.confirmed == FIRST.services
    again = FakeEnvoy()  # the first one hangs
    running = asyncio.create_task(again.run(discovery))
    await impatient.push(BOTH)
    assert impatient.confirmed == BOTH.services
    assert again.seen[-1] == "endpoints {1001: 'DRAINING', 2001: 'HEALTHY'}, routed ['r-00002']"
    running.cancel()


async def test_what_envoy_refuses_is_said_in_its_words(router, envoy):
    await router.push(FIRST)
    envoy.refuses = Kind.ROUTES
    for _ in range(2):  # it is not sent again
        with pytest.raises(Unavailable, match="refuses default/digits: no such thing"):
            await router.push(BOTH)
    assert [kind for kind, _ in envoy.sent].count(Kind.ROUTES) == 2
    assert router.confirmed == FIRST.services
    await router.push(FIRST)  # what it has is no news


async def test_a_refused_filter_keeps_no_other_from_envoy(router, envoy):
    await router.push(FIRST)
    envoy.dislikes = access.JWT_FILTER
    keys = CallerKeys(public=({"kty": "EC"},), revoked=("1" * 32,))
    with pytest.raises(Unavailable, match=f"refuses {access.JWT_FILTER}: no such thing"):
        await router.push(replace(BOTH, keys=keys))
    assert "1" * 32 in str(envoy.has[Kind.EXTENSIONS][access.REVOKED_FILTER])
    await router.push(replace(BOTH, keys=replace(keys, public=())))
    assert router.confirmed == BOTH.services


async def test_an_envoy_that_comes_back_is_sent_what_is_different(router, envoy, discovery, tmp_path):
    await router.push(FIRST)
    known = FakeEnvoy()
    known.has, known.versions = envoy.has, envoy.versions
    later = Discovery(tmp_path / "later.sock")  # of the next agent
    await later.start()
    running = asyncio.create_task(known.run(later))
    try:
        await Router(later, patience_s=30).push(BOTH)
        assert [names for kind, names in known.sent if kind is Kind.CLUSTERS] == [
            [f"default/r-00002/{use}" for use in ("grpc", "http", "meta")]
        ]
        assert [names for kind, names in known.sent if kind is Kind.SCOPES] == [[]]
        assert [names for kind, names in known.sent if kind is Kind.ROUTES] == [["default/digits"]]
        assert known.seen[-1] == "endpoints {1001: 'DRAINING', 2001: 'HEALTHY'}, routed ['r-00002']"
    finally:
        running.cancel()
        await later.close()
