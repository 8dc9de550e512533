"""Envoy resources: clusters, endpoints, scopes and routes, separate for each service and revision. Pure.

A scope matches the requests of a service, and names its routes. So a change of a service sends that service's routes,
and a request finds them in constant time with any number of services.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, partial
from typing import Any, TypeVar

from integrations.clusters.base import CallerKeys
from integrations.clusters.local.envoy import access, api, limits
from integrations.clusters.local.envoy.clusters import cluster, endpoints
from integrations.clusters.local.envoy.names import cluster_name
from integrations.clusters.local.envoy.routes import routes, with_previews
from integrations.clusters.local.envoy.scopes import FOUND_BY, scope, scope_name
from integrations.clusters.local.envoy.values import RevisionEndpoints, RowsExceeded, ServiceRoute

Json = dict[str, Any]
Subject = TypeVar("Subject", bound=Hashable)


class Kind(StrEnum):
    """The kinds of resources by their type URLs, in the order in which a new Envoy needs them."""

    SECRETS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
    CLUSTERS = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
    ENDPOINTS = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
    ROUTES = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
    EXTENSIONS = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
    SCOPES = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"

    @property
    def is_whole(self) -> bool:
        """Return whether Envoy requests all of the kind; else those that clusters or scopes name."""
        return self in (Kind.CLUSTERS, Kind.SCOPES)


class Resource:
    """One resource on the wire, rendered when it is needed.

    Attributes:
        on_demand: Envoy requests it when a request needs it, if ever.
    """

    def __init__(self, render: Callable[[], Json], *, on_demand: bool = False) -> None:
        self.on_demand = on_demand
        self._render = render

    @classmethod
    def of(cls, rendered: Json) -> "Resource":
        """Return the resource of protobuf's JSON."""
        found = cls(lambda: rendered)
        _ = found.version
        return found

    @cached_property
    def content(self) -> bytes:
        """Return its protobuf."""
        return api.encoded(self._render())

    @cached_property
    def version(self) -> str:
        """Return its version, which depends on its content only: the same from any agent."""
        return hashlib.blake2b(self.content, digest_size=8).hexdigest()


Resources = Mapping[str, Resource]
"""Resources of one kind by their names."""


@dataclass(slots=True)
class Renderer:
    """Renders changes since its last call; the rest is cached.

    Attributes:
        renamed: how often `rename` gave the routes of a service another name, by the service's key.
    """

    renamed: Counter[str] = field(default_factory=Counter)
    _kept: dict[str, dict[str, tuple[Hashable, Resource]]] = field(default_factory=dict)

    def clusters(self, revisions: Iterable[RevisionEndpoints]) -> Resources:
        """Return every cluster of `revisions`."""
        named = {
            cluster_name(each.namespace, each.revision, use, each.slept_at): (each, use)
            for each in (replace(each, endpoints=()) for each in revisions)
            for use in each.uses
        }
        return self._rendered(Kind.CLUSTERS, named, lambda subject: cluster(*subject))

    def endpoints(self, revisions: Iterable[RevisionEndpoints]) -> Resources:
        """Return the endpoints of every cluster of `revisions`."""
        named = {
            cluster_name(each.namespace, each.revision, use, each.slept_at): (each, use)
            for each in revisions
            for use in each.uses
        }
        return self._rendered(Kind.ENDPOINTS, named, lambda subject: endpoints(*subject))

    def routes(self, services: Iterable[ServiceRoute]) -> Resources:
        """Return the routes of every service and preview."""
        found = ((self._routes_name(service), service) for service in with_previews(services))
        named = {name: (service, name) for name, service in found}
        return self._rendered(Kind.ROUTES, named, lambda subject: routes(*subject), lambda each: each[0].is_on_demand)

    def rename(self, names: Iterable[str]) -> None:
        """Give the routes of these names other ones, so that Envoy drops them until requests need them again."""
        self.renamed.update(name.partition("~")[0] for name in names)

    def _routes_name(self, service: ServiceRoute) -> str:
        number = self.renamed[service.key] if service.is_on_demand else 0
        return f"{service.key}~{number}" if number else service.key

    def extensions(self, keys: CallerKeys, exceeded: RowsExceeded) -> Resources:
        """Return the filters that check the tokens of callers and limit their requests, each of what concerns it."""
        verified = CallerKeys(keys.issuer, keys.audience, keys.public, issuers=keys.issuers)
        refused = CallerKeys(
            revoked=keys.revoked,
            exhausted=keys.exhausted,
            exhausted_keys=keys.exhausted_keys,
            exhausted_services=keys.exhausted_services,
        )
        limited = CallerKeys(rates=keys.rates, team_rates=keys.team_rates)
        named = {access.JWT_FILTER: (access.JWT_FILTER, verified, RowsExceeded())}
        named[access.REVOKED_FILTER] = access.REVOKED_FILTER, refused, exceeded
        named |= {name: (name, limited, RowsExceeded()) for name in limits.SENT}
        return self._rendered(Kind.EXTENSIONS, named, lambda subject: _extension(*subject))

    def scopes(self, services: Iterable[ServiceRoute]) -> Resources:
        """Return the scopes of every service and preview."""
        named = {
            scope_name(way, service.key): (way, service.key, self._routes_name(service), service.is_on_demand)
            for service in with_previews(services)
            for way in FOUND_BY
        }
        return self._rendered(Kind.SCOPES, named, lambda each: scope(*each[:2], routes=each[2], on_demand=each[3]))

    def _rendered(
        self,
        kind: Kind,
        named: Mapping[str, Subject],
        render: Callable[[Subject], Json],
        is_on_demand: Callable[[Subject], bool] = lambda _: False,
    ) -> Resources:
        kept = self._kept.get(kind, {})
        found: dict[str, tuple[Hashable, Resource]] = {}
        for name, subject in named.items():
            before = kept.get(name)
            if before is None or not (before[0] is subject or before[0] == subject):
                later = is_on_demand(subject)
                before = (
                    subject,
                    (Resource(partial(render, subject), on_demand=True) if later else Resource.of(render(subject))),
                )
            found[name] = before
        self._kept[kind] = found
        return {name: resource for name, (_, resource) in found.items()}


def _extension(name: str, keys: CallerKeys, exceeded: RowsExceeded) -> Json:
    return access.extension(name, keys, exceeded) if name in access.SENT else limits.extension(name, keys)
