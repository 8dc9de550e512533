"""What the gateway confirmed of a service's routes. Pure.

A route is confirmed when the operator's Gateway has accepted it, found all it leads to, and says so of the route's
present generation. Until all routes of a service are, what was confirmed last still holds; that is kept in an
annotation of the service's HTTPRoute, written with each change.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from integrations.clusters.kubernetes.manifests.names import CONFIRMED, GENERATION, PREVIEW
from integrations.clusters.kubernetes.options import GatewayReference

Json = Mapping[str, Any]
_MUST_HOLD = ("Accepted", "ResolvedRefs")


@dataclass(frozen=True, slots=True)
class Routed:
    """How requests go: percent of requests and of copies per revision, who answers at the preview address."""

    generation: int = 0
    weights: Mapping[str, int] = field(default_factory=dict)
    mirrors: Mapping[str, int] = field(default_factory=dict)
    preview: str = ""

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What holds, and why what was asked last does not yet; empty where it does."""

    routed: Routed
    problem: str = ""


def confirmation(service: str, routes: Sequence[Json], gateway: GatewayReference) -> Confirmation:
    """Return what `gateway` confirmed of a service's routes, of which its HTTPRoute has the service's name."""
    main = next((each for each in routes if each["kind"] == "HTTPRoute" and _name(each) == service), None)
    if main is None:
        return Confirmation(Routed())
    for route in routes:
        problem = _problem(route, gateway)
        if problem:
            return Confirmation(_before(main), problem)
    return Confirmation(_asked(main))


def _problem(route: Json, gateway: GatewayReference) -> str:
    what = f"{route['kind']} {_name(route)}"
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
                return f"the gateway {gateway.name} does not take {what}: {condition['message']}"
        return ""
    return f"the gateway {gateway.name} in {gateway.namespace} says nothing of {what}; is it there, and runs?"


def _asked(route: Json) -> Routed:
    infer = route["spec"]["rules"][0]
    copies = [each["requestMirror"] for each in infer.get("filters", ()) if each["type"] == "RequestMirror"]
    annotations = route["metadata"]["annotations"]
    return Routed(
        generation=int(annotations[GENERATION]),
        weights={each["name"]: each["weight"] for each in infer.get("backendRefs", ())},
        mirrors={each["backendRef"]["name"]: each["percent"] for each in copies},
        preview=annotations.get(PREVIEW, ""),
    )


def _before(route: Json) -> Routed:
    kept = route["metadata"].get("annotations", {}).get(CONFIRMED)
    return Routed(**json.loads(kept)) if kept else Routed()


def _name(route: Json) -> str:
    return str(route["metadata"]["name"])
