"""The order in which Envoy gets to know of changes, so that no request meets a route without a replica behind it.

    1. clusters, and new endpoints in them        wait until the admin page shows them
    2. routes                                     wait for their version: only now are the weights true
    3. endpoints that leave are marked draining   wait; what is in flight goes on
    4. clusters of revisions that are gone are removed

Endpoints of replicas that died go in step 1, since nothing can be sent there anyway. Each step is one set of files
replaced by renames, which Envoy watches.
"""

import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from common.errors import Unavailable
from integrations.clusters.local.agent.admin import Admin
from integrations.clusters.local.agent.polling import until
from integrations.clusters.local.envoy.bootstrap import CLUSTERS_FILE, ROUTES_FILE
from integrations.clusters.local.envoy.clusters import clusters, endpoints, place_of
from integrations.clusters.local.envoy.names import ClusterUse, cluster_name, endpoints_file
from integrations.clusters.local.envoy.routes import route_table
from integrations.clusters.local.envoy.words import Endpoint, RevisionEndpoints, ServiceRoute
from integrations.clusters.local.files import write_json

_POLL_S = 0.005
Key = tuple[str, str]  # namespace and revision


@dataclass(frozen=True, slots=True)
class Routing:
    """Everything the gateway should know."""

    services: tuple[ServiceRoute, ...] = ()
    revisions: tuple[RevisionEndpoints, ...] = ()


class Router:
    """Brings Envoy from what it knows to what it should know. `confirmed` is what it was last seen to route by."""

    def __init__(self, folder: Path, *, patience_s: float) -> None:
        self._folder = folder
        self._patience_s = patience_s
        self._written: dict[str, str] = {}
        self._known: dict[Key, RevisionEndpoints] = {}
        self._version = 0
        self._routes_version = ""
        self.since: dict[Key, float] = {}
        self.confirmed: tuple[ServiceRoute, ...] = ()
        self._write_clusters(())
        self._write_routes(())

    def announce(self, services: Iterable[ServiceRoute]) -> None:
        """Let a gateway that is yet to start answer that services are starting, and not that there are none."""
        self._write_routes(services)

    async def push(self, wanted: Routing, admin: Admin) -> None:
        """Make Envoy route by `wanted`.

        Raises:
            Unavailable: Envoy did not take up a step in time; what was not reached is tried again by the next call.
        """
        new = {(revision.namespace, revision.revision): revision for revision in wanted.revisions}
        kept = {key: _not_yet_draining(revision, self._known.get(key)) for key, revision in new.items()}
        leaving = {key: revision for key, revision in self._known.items() if key not in new}
        await self._push_endpoints({**leaving, **kept}, admin)
        self._write_routes(wanted.services)
        await self._until(self._routes_are_known, admin, "the routes")
        self.confirmed = wanted.services
        await self._push_endpoints({**leaving, **new}, admin)
        if leaving:
            self._write_clusters(new.values())
            for namespace, revision in leaving:
                self._forget(namespace, revision)
        self._known = new

    async def _push_endpoints(self, revisions: Mapping[Key, RevisionEndpoints], admin: Admin) -> None:
        for revision in revisions.values():
            for use in revision.uses:
                place = endpoints_file(revision.namespace, revision.revision, use)
                self._write(place, partial(endpoints, revision, use))
        self._write_clusters(revisions.values())
        self._known = dict(revisions)
        await self._until(self._endpoints_are_known, admin, "the endpoints")

    def _write_clusters(self, revisions: Iterable[RevisionEndpoints]) -> None:
        known = sorted(revisions, key=lambda revision: (revision.namespace, revision.revision))
        now = time.time()
        self.since = {key: self.since.get(key, now) for key in ((each.namespace, each.revision) for each in known)}
        self._write(CLUSTERS_FILE, partial(clusters, known, folder=str(self._folder)))

    def _write_routes(self, services: Iterable[ServiceRoute]) -> None:
        self._routes_version = self._write(ROUTES_FILE, partial(route_table, tuple(services))) or self._routes_version

    def _write(self, place: str, render: Callable[..., dict[str, Any]]) -> str:
        """Replace the file if more than its version changes; returns the new version, or "" where nothing does."""
        content = json.dumps(render(version=""))
        if self._written.get(place) == content:
            return ""
        self._version += 1
        write_json(self._folder / place, render(version=str(self._version)))
        self._written[place] = content
        return str(self._version)

    def _forget(self, namespace: str, revision: str) -> None:
        for use in ClusterUse:
            place = endpoints_file(namespace, revision, use)
            self._written.pop(place, None)
            (self._folder / place).unlink(missing_ok=True)

    async def _endpoints_are_known(self, admin: Admin) -> bool:
        hosts = await admin.hosts()
        for revision in self._known.values():
            for use in revision.uses:
                found = hosts.get(cluster_name(revision.namespace, revision.revision, use))
                wanted = {place_of(endpoint, use): _status(endpoint) for endpoint in revision.endpoints}
                if found is None or {place: host.status for place, host in found.items()} != wanted:
                    return False
        return True

    async def _routes_are_known(self, admin: Admin) -> bool:
        return await admin.routes_version() == self._routes_version

    async def _until(self, condition: Callable[[Admin], Awaitable[bool]], admin: Admin, what: str) -> None:
        try:
            await until(lambda: condition(admin), every_s=_POLL_S, within_s=self._patience_s)
        except TimeoutError:
            raise Unavailable(
                f"the gateway did not take up {what} within {self._patience_s:g} s; its log says why (logs/gateway.log)"
            ) from None


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


def _status(endpoint: Endpoint) -> str:
    return "DRAINING" if endpoint.draining else "HEALTHY"
