"""Confirmation of a service's routes by the gateway. Pure.

A route is confirmed when the operator's Gateway has accepted it, resolved all its references, and reports so for the
route's present generation. Until all routes of a service are confirmed, the last confirmation still holds; an
annotation of the service's HTTPRoute keeps it, written with each change.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from integrations.clusters.base import HeaderMatch
from integrations.clusters.kubernetes.manifests.names import (
    CONFIRMED,
    GENERATION,
    MATCH,
    OWN,
    PREVIEW,
    match_route,
    no_endpoints_name,
    replicas_name,
    revision_of,
)
from integrations.clusters.kubernetes.manifests.routes.client_groups import from_json, is_closed
from integrations.clusters.kubernetes.manifests.routes.pooled import revision_at
from integrations.clusters.kubernetes.options import GatewayReference, Options

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Routed:
    """Routing state: percent of requests and of copies per revision, and the revision at the preview address.

    Attributes:
        groups: client groups whose requests are a revision's with any percents, as `manifests/routes/client_groups.py`
            writes them.
        own: as the annotation of own replicas of a service in a pool has it.
    """

    generation: int = 0
    weights: Mapping[str, int] = field(default_factory=dict)
    mirrors: Mapping[str, int] = field(default_factory=dict)
    preview: str = ""
    groups: str = ""
    own: str = ""

    def match(self, revision: str) -> tuple[HeaderMatch, ...]:
        """Return the group whose requests are the revision's; empty without one."""
        return from_json(self.groups).get(revision, ())

    def to_json(self) -> str:
        """Return it as JSON text."""
        said = asdict(self)
        if not self.own:
            del said["own"]  # a release before it reads the others
        return json.dumps(said, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The confirmed routing, and why the last requested one is not confirmed yet; empty where it is."""

    routed: Routed
    problem: str = ""


def confirmation(
    service: str, routes: Sequence[Json], gateway: GatewayReference, policies: Sequence[Json] = ()
) -> Confirmation:
    """Return the confirmation by `gateway` of a service's routes, of which its HTTPRoute has the service's name.

    Where it does not apply one of the service's policies, the routing is confirmed, but not its generation.
    """
    main = _main(service, routes)
    if main is None:
        return Confirmation(Routed())
    asked = _asked(main)
    there = [route["kind"] for route in routes if _name(route) == match_route(service, 0)]
    if asked.groups and len(there) < 2:  # one for HTTP, one for gRPC
        return Confirmation(_before(main), f"the routes {match_route(service, 0)} are not there; they are made again")
    for route in routes:
        problem = route_problem(route, gateway)
        if problem:
            return Confirmation(_before(main), problem)
    for policy in policies:
        problem = policy_problem(policy, gateway)
        if problem:
            return Confirmation(replace(asked, generation=max(0, asked.generation - 1)), problem)
    return Confirmation(asked)


def confirmed_before(service: str, routes: Sequence[Json], options: Options) -> Routed:
    """Return the routing that a Gateway of the service confirmed last, to be kept while its routes change.

    A Gateway that serves the service from now on has confirmed nothing yet: the one that it leaves has.
    """
    found = [confirmation(service, routes, each) for each in (options.gateway, *options.also)]
    return next((each.routed for each in found if not each.problem), found[0].routed)


def must_hold(
    service: str, routes: Sequence[Json], wanted: Collection[str], policies: Sequence[Json], gateway: GatewayReference
) -> bool:
    """Return whether routes have to lead to no revision yet, for the gateway might apply them without the policies.

    Routes that lead to revisions already stay as they are while a policy is new.

    Args:
        wanted: the kinds of the policies that the service needs.
        policies: those that are there.
    """
    if not wanted:
        return False
    main = _main(service, routes)
    backends = () if main is None else main["spec"]["rules"][0].get("backendRefs", ())
    is_open = any(each["name"] != no_endpoints_name(service) for each in backends)
    in_force = {each["kind"] for each in policies if not policy_problem(each, gateway)}
    return not is_open and not in_force.issuperset(wanted)


def policy_problem(policy: Json, gateway: GatewayReference) -> str:
    """Return why `gateway` does not apply a policy of Envoy Gateway's kinds; empty where it does.

    A policy that is in force stays so while a change of it is taken up.
    """
    what = f"{policy['kind']} {_name(policy)}"
    for ancestor in policy.get("status", {}).get("ancestors", ()):
        reference = ancestor["ancestorRef"]
        if (reference["name"], reference.get("namespace", gateway.namespace)) != (gateway.name, gateway.namespace):
            continue
        accepted = next((each for each in ancestor.get("conditions", ()) if each["type"] == "Accepted"), None)
        if accepted is not None and accepted["status"] == "True":
            return ""
        if accepted is not None:
            said = f"{accepted.get('reason', '')}: {accepted.get('message', '')}".strip(": ")
            return f"the gateway {gateway.name} does not apply {what}: {said}"
    return f"the gateway {gateway.name} has not taken up {what} yet"


def leads_to_pool(pool: str, routes: Sequence[Json]) -> bool:
    """Return whether a rule of a service's routes leads to a pool's replicas."""
    rules = [rule for route in routes for rule in route["spec"]["rules"]]
    return any(each["name"] == replicas_name(pool) for rule in rules for each in rule.get("backendRefs", ()))


def _main(service: str, routes: Sequence[Json]) -> Json | None:
    return next((each for each in routes if each["kind"] == "HTTPRoute" and _name(each) == service), None)


def _asked(route: Json) -> Routed:
    infer = next((each for each in route["spec"]["rules"] if not is_closed(each)), route["spec"]["rules"][0])
    copies = [each["requestMirror"] for each in infer.get("filters", ()) if each["type"] == "RequestMirror"]
    annotations = route["metadata"]["annotations"]
    return Routed(
        generation=int(annotations[GENERATION]),
        weights=_weights(infer.get("backendRefs", ())),
        mirrors={revision_of(each["backendRef"]["name"]): each["percent"] for each in copies},
        preview=annotations.get(PREVIEW, ""),
        groups=annotations.get(MATCH, ""),
        own=annotations.get(OWN, ""),
    )


def _weights(backends: Sequence[Json]) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for each in backends:
        found[revision_at(each)] += each["weight"]
    factor = max(1, found.total() // 100)  # those of own replicas beside a pool are larger
    return {revision: weight // factor for revision, weight in found.items()}


def _before(route: Json) -> Routed:
    kept = route["metadata"].get("annotations", {}).get(CONFIRMED)
    return Routed(**json.loads(kept)) if kept else Routed()


def _name(route: Json) -> str:
    return str(route["metadata"]["name"])


_MUST_HOLD = ("Accepted", "ResolvedRefs")
_ADVICE = {
    "NotAllowedByListeners": (
        "none of its listeners takes such routes from the namespace {namespace}; set allowedRoutes of a listener so "
        "that it takes {kind}s from there"
    ),
    "NoMatchingListenerHostname": (
        "none of its listeners is for the host {hosts}; give a listener that host or a wildcard for it, or change the "
        "cluster's domain"
    ),
    "NoMatchingParent": "it has no listener {listener}; name one that it has in the cluster's options",
    "UnsupportedValue": "it does not support something that the route asks for; use a gateway that does",
    "IncompatibleFilters": "it cannot do together what the route asks for; use a gateway that can",
    "RefNotPermitted": (
        "the route leads to another namespace, which a ReferenceGrant there has to permit; where it leads to a model "
        "pool, have the pool's owner add {namespace} to sharedWith, else look who changed it"
    ),
    "BackendNotFound": "the Service of a revision is not there; it is made again, and if not, look who deletes it",
    "InvalidKind": "it does not lead requests to Services; use a gateway that does",
    "UnsupportedProtocol": (
        "it does not speak the protocol of a revision's port, which is HTTP/1.1 or h2c; use a gateway that does"
    ),
    "Pending": "its controller has not got to it yet; look whether it runs",
}


def route_problem(route: Json, gateway: GatewayReference) -> str:
    """Return why `gateway` does not apply the route's present generation; empty where it does.

    The reasons are those of the Gateway API (RouteConditionReason); for an implementation's own reasons its message is
    shown alone.
    """
    what = f"{route['kind']} {route['metadata']['name']}"
    for parent in route.get("status", {}).get("parents", ()):
        reference = parent["parentRef"]
        if (reference["name"], reference.get("namespace", gateway.namespace)) != (gateway.name, gateway.namespace):
            continue
        conditions = {each["type"]: each for each in parent.get("conditions", ())}
        for needed in _MUST_HOLD:
            condition = conditions.get(needed)
            if condition is None or condition.get("observedGeneration", 0) < route["metadata"]["generation"]:
                return f"the gateway {gateway.name} has not taken up {what} yet"
            if condition["status"] != "True":
                return f"the gateway {gateway.name} does not take {what}: {_reason(condition, route)}"
        partly = conditions.get("PartiallyInvalid", {"status": "False"})
        if partly["status"] == "True":
            return f"the gateway {gateway.name} takes only a part of {what}: {_reason(partly, route)}"
        return ""
    return f"the gateway {gateway.name} in {gateway.namespace} says nothing of {what}; is it there, and runs?"


def _reason(condition: Json, route: Json) -> str:
    reason, message = str(condition.get("reason", "")), str(condition.get("message", "")).strip()
    said = f"{reason}: {message}" if message else reason
    if reason not in _ADVICE:
        return said
    advice = _ADVICE[reason].format(
        kind=route["kind"],
        namespace=route["metadata"]["namespace"],
        hosts=", ".join(route["spec"].get("hostnames", ())) or "of any request",
        listener=route["spec"]["parentRefs"][0].get("sectionName", "for it"),
    )
    return f"{advice} ({said})"
