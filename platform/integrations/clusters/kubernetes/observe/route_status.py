"""Route status of a Gateway, as one sentence with what to do. Pure.

The reasons are those of the Gateway API (RouteConditionReason); for an implementation's own reasons its message is
shown alone.
"""

from collections.abc import Mapping
from typing import Any

from integrations.clusters.kubernetes.options import GatewayReference

Json = Mapping[str, Any]
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
        "the route leads to another namespace, which a ReferenceGrant there has to permit; routes of Fairlead stay in "
        "their own, so look who changed it"
    ),
    "BackendNotFound": "the Service of a revision is not there; it is made again, and if not, look who deletes it",
    "InvalidKind": "it does not lead requests to Services; use a gateway that does",
    "UnsupportedProtocol": (
        "it does not speak the protocol of a revision's port, which is HTTP/1.1 or h2c; use a gateway that does"
    ),
    "Pending": "its controller has not got to it yet; look whether it runs",
}


def problem(route: Json, gateway: GatewayReference) -> str:
    """Return why `gateway` does not apply the route's present generation; empty where it does."""
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
