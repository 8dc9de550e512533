"""Confirmation of a service's routes by the gateway. Pure.

A route is confirmed when the operator's Gateway has accepted it, resolved all its references, and reports so for the
route's present generation. Until all routes of a service are confirmed, the last confirmation still holds; an
annotation of the service's HTTPRoute keeps it, written with each change.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from integrations.clusters.base import HeaderMatch
from integrations.clusters.kubernetes.manifests.names import (
    CONFIRMED,
    GENERATION,
    MATCH,
    PREVIEW,
    match_route,
    revision_of,
)
from integrations.clusters.kubernetes.manifests.routes.client_groups import from_json
from integrations.clusters.kubernetes.observe import route_status
from integrations.clusters.kubernetes.options import GatewayReference

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Routed:
    """Routing state: percent of requests and of copies per revision, and the revision at the preview address.

    Attributes:
        groups: client groups whose requests are a revision's with any percents, as `manifests/routes/client_groups.py`
            writes them.
    """

    generation: int = 0
    weights: Mapping[str, int] = field(default_factory=dict)
    mirrors: Mapping[str, int] = field(default_factory=dict)
    preview: str = ""
    groups: str = ""

    def match(self, revision: str) -> tuple[HeaderMatch, ...]:
        """Return the group whose requests are the revision's; empty without one."""
        return from_json(self.groups).get(revision, ())

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The confirmed routing, and why the last requested one is not confirmed yet; empty where it is."""

    routed: Routed
    problem: str = ""


def confirmation(service: str, routes: Sequence[Json], gateway: GatewayReference) -> Confirmation:
    """Return the confirmation by `gateway` of a service's routes, of which its HTTPRoute has the service's name."""
    main = next((each for each in routes if each["kind"] == "HTTPRoute" and _name(each) == service), None)
    if main is None:
        return Confirmation(Routed())
    asked = _asked(main)
    there = [route["kind"] for route in routes if _name(route) == match_route(service, 0)]
    if asked.groups and len(there) < 2:  # one for HTTP, one for gRPC
        return Confirmation(_before(main), f"the routes {match_route(service, 0)} are not there; they are made again")
    for route in routes:
        problem = route_status.problem(route, gateway)
        if problem:
            return Confirmation(_before(main), problem)
    return Confirmation(asked)


def _asked(route: Json) -> Routed:
    infer = route["spec"]["rules"][0]
    copies = [each["requestMirror"] for each in infer.get("filters", ()) if each["type"] == "RequestMirror"]
    annotations = route["metadata"]["annotations"]
    return Routed(
        generation=int(annotations[GENERATION]),
        weights={revision_of(each["name"]): each["weight"] for each in infer.get("backendRefs", ())},
        mirrors={revision_of(each["backendRef"]["name"]): each["percent"] for each in copies},
        preview=annotations.get(PREVIEW, ""),
        groups=annotations.get(MATCH, ""),
    )


def _before(route: Json) -> Routed:
    kept = route["metadata"].get("annotations", {}).get(CONFIRMED)
    return Routed(**json.loads(kept)) if kept else Routed()


def _name(route: Json) -> str:
    return str(route["metadata"]["name"])
