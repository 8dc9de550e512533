"""Update order of Envoy's resources, so that no request meets a route without a replica behind it.

    1. clusters, and new endpoints in them        wait until Envoy has acknowledged them
    2. routes, the scopes that lead to them, and
       the keys of callers                        wait: only now are the weights true
    3. endpoints that leave are marked draining   wait; what is in flight goes on
    4. clusters of revisions that are gone are removed

Endpoints of dead replicas are removed in step 1, since nothing can be sent there anyway. Each step sends only changes.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from common.errors import Unavailable
from integrations.clusters.base import CallerKeys
from integrations.clusters.local.agent.gateway.discovery import Discovery
from integrations.clusters.local.envoy.resources import Kind, Renderer
from integrations.clusters.local.envoy.values import RevisionEndpoints, RowsExceeded, ServiceRoute

Key = tuple[str, str]  # namespace and revision


_MOST_ON_DEMAND, _LEFT_ON_DEMAND = 1500, 1200
"""Services at rest whose routes Envoy has: beyond the first number all but the second are dropped."""


@dataclass(frozen=True, slots=True)
class Routing:
    """Desired routing of the gateway."""

    services: tuple[ServiceRoute, ...] = ()
    revisions: tuple[RevisionEndpoints, ...] = ()
    keys: CallerKeys = field(default_factory=CallerKeys)


class Router:
    """Brings Envoy from its present routing to the desired one. `confirmed` is the last confirmed routing."""

    def __init__(self, discovery: Discovery, *, patience_s: float) -> None:
        self._discovery = discovery
        self._patience_s = patience_s
        self._renderer = Renderer()
        self._known: dict[Key, RevisionEndpoints] = {}
        self._keys: CallerKeys | None = None
        self._services: tuple[ServiceRoute, ...] = ()
        self._exceeded = RowsExceeded()
        self.since: dict[Key, float] = {}
        self.confirmed: tuple[ServiceRoute, ...] = ()

    def announce(self, routing: Routing) -> None:
        """Make a gateway that is yet to start answer that services are starting, not that they are unknown.

        It takes requests once it has been sent every kind, even an empty one.
        """
        self.take_up(routing.revisions, self.since)
        self._set_clusters(self._known)
        self._set_routes(routing)

    def take_up(self, revisions: Iterable[RevisionEndpoints], since: Mapping[Key, float]) -> None:
        """Go on from the routing that an earlier agent configured, with its start times."""
        self._known = _by_key(revisions)
        self.since = {key: since[key] for key in self._known if key in since}

    def refuse(self, exceeded: RowsExceeded) -> None:
        """Have exactly these refused for the rows of their requests, without waiting for Envoy."""
        self._exceeded = exceeded
        if self._keys is not None:
            self._discovery.set(Kind.EXTENSIONS, self._renderer.extensions(self._keys, exceeded))

    def forget(self) -> None:
        """Have Envoy drop the routes on demand that it has had the longest, once it has many: each take 0.3 MiB."""
        had = self._discovery.has_on_demand(Kind.ROUTES)
        if len(had) > _MOST_ON_DEMAND:
            self._renderer.rename(had[: len(had) - _LEFT_ON_DEMAND])
            self._send_routes()

    def _set_routes(self, routing: Routing) -> None:
        self._keys, self._services = routing.keys, routing.services
        self._discovery.set(Kind.EXTENSIONS, self._renderer.extensions(routing.keys, self._exceeded))
        self._send_routes()

    def _send_routes(self) -> None:
        self._discovery.set(Kind.ROUTES, self._renderer.routes(self._services))
        self._discovery.set(Kind.SCOPES, self._renderer.scopes(self._services))

    async def push(self, wanted: Routing) -> None:
        """Make Envoy route by `wanted`.

        Raises:
            Unavailable: Envoy refused a step or did not take it up in time; the next call tries the remaining steps
                again.
        """
        new = _by_key(wanted.revisions)
        kept = {key: _not_yet_draining(revision, self._known.get(key)) for key, revision in new.items()}
        leaving = {key: revision for key, revision in self._known.items() if key not in new}
        await self._push_endpoints({**leaving, **kept})
        self._set_routes(wanted)
        await self._until_taken_up("the routes", Kind.EXTENSIONS, Kind.ROUTES, Kind.SCOPES)
        self.confirmed = wanted.services
        await self._push_endpoints({**leaving, **new})
        if leaving:
            self._set_clusters(new)
        self._known = new

    async def _push_endpoints(self, revisions: Mapping[Key, RevisionEndpoints]) -> None:
        self._set_clusters(revisions)
        self._known = dict(revisions)
        await self._until_taken_up("the endpoints", Kind.CLUSTERS, Kind.ENDPOINTS)

    def _set_clusters(self, revisions: Mapping[Key, RevisionEndpoints]) -> None:
        now = time.time()
        self.since = {key: self.since.get(key, now) for key in sorted(revisions)}
        self._discovery.set(Kind.ENDPOINTS, self._renderer.endpoints(revisions.values()))
        self._discovery.set(Kind.CLUSTERS, self._renderer.clusters(revisions.values()))

    async def _until_taken_up(self, what: str, *kinds: Kind) -> None:
        try:
            await self._discovery.taken_up(*kinds, within_s=self._patience_s)
        except TimeoutError:
            raise Unavailable(
                f"the gateway did not take up {what} within {self._patience_s:g} s; its log says why (logs/gateway.log)"
            ) from None


def _by_key(revisions: Iterable[RevisionEndpoints]) -> dict[Key, RevisionEndpoints]:
    """Return them by namespace and name; the second of a name, a pool's beside own replicas, with a suffix."""
    found: dict[Key, RevisionEndpoints] = {}
    for each in revisions:
        key = each.namespace, each.revision
        found[(each.namespace, f"{each.revision}~") if key in found else key] = each
    return found


def _not_yet_draining(wanted: RevisionEndpoints, known: RevisionEndpoints | None) -> RevisionEndpoints:
    """Return `wanted` with the endpoints that are about to drain still taking requests, if they do now."""
    serving = (
        {replace(endpoint, draining=False) for endpoint in known.endpoints if not endpoint.draining} if known else set()
    )
    kept = (
        replace(endpoint, draining=False) if replace(endpoint, draining=False) in serving else endpoint
        for endpoint in wanted.endpoints
    )
    return replace(wanted, endpoints=tuple(kept))
