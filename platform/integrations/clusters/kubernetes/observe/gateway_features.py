"""Supported features of the GatewayClass, and the refusal of desired state that needs others. Pure.

A class reports `status.supportedFeatures`, in the Gateway API's own names. That list has no name for header matches by
regular expression, whose support is implementation-specific (HTTPHeaderMatch, GRPCHeaderMatch), nor for copies of gRPC
calls, for which HTTPRoutes' feature counts: both kinds of routes have the same filter. Some gateways accept an
expression and then compare nothing, so that unknown support is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import InvalidInput
from integrations.clusters.base import Desired, DesiredRevision, Limits
from integrations.clusters.kubernetes.manifests.routes.client_groups import needs_expressions
from integrations.clusters.kubernetes.options import Options

MIRROR = "HTTPRouteRequestMirror"
MIRROR_OF_A_SHARE = "HTTPRouteRequestPercentageMirror"
EXPRESSIONS = "header matches by regular expression"
POLICIES = "policies of Envoy Gateway"
"""Its SecurityPolicy and BackendTrafficPolicy, release 1.9 or newer."""
ASKED = {
    "spec.access": "spec.access of {} is not public",
    "spec.cors": "spec.cors of {} names origins",
    "spec.limits": "spec.limits of {} limits requests",
}
"""What fields of the service file ask of these policies."""

# Envoy Gateway reports no features (v1.9, internal/gatewayapi/status/gatewayclass.go) and has these
# (internal/gatewayapi/filters.go, route.go).
_ENVOY_GATEWAY = frozenset({MIRROR, MIRROR_OF_A_SHARE, EXPRESSIONS, POLICIES})
_KNOWN = {"gateway.envoyproxy.io/gatewayclass-controller": _ENVOY_GATEWAY}


@dataclass(frozen=True, slots=True)
class GatewayClass:
    """The class of the operator's Gateway.

    Attributes:
        name: empty without such a Gateway.
        features: supported features, reported by itself or known from its controller.
        is_reported: it has reported its features, so that an absent one is unsupported.
    """

    name: str = ""
    features: frozenset[str] = frozenset()
    is_reported: bool = False

    @classmethod
    def read(cls, gateway: Mapping[str, Any] | None, found: Mapping[str, Any] | None) -> "GatewayClass":
        """Return the class of a Gateway; either may be missing."""
        name = "" if gateway is None else str(gateway["spec"]["gatewayClassName"])
        if found is None:
            return cls(name)
        reported = {each["name"] for each in found.get("status", {}).get("supportedFeatures", ())}
        known = _KNOWN.get(found["spec"]["controllerName"], frozenset())
        return cls(name, known | reported, is_reported=bool(reported))


def asks_much(desired: Desired) -> bool:
    """Return whether the desired state needs features that not every gateway has."""
    return bool(policy_fields(desired)) or any(
        each.mirror_percent or needs_expressions(each.match) for each in desired.revisions
    )


def policy_fields(desired: Desired) -> list[str]:
    """Return the fields of the service file for which the gateway needs policies; many services have none."""
    asked = {
        "spec.access": desired.access is not None,
        "spec.cors": desired.cors is not None,
        "spec.limits": desired.limits != Limits(),
    }
    return [field for field, is_asked in asked.items() if is_asked]


def refuse_sleep(desired: Desired, options: Options) -> None:
    """Raise InvalidInput where a service may sleep, but its requests could not wait for its first replica."""
    asleep = next((each for each in desired.revisions if each.may_sleep), None)
    if asleep is None:
        return
    problem = ""
    if options.waker is None:
        problem = (
            "the cluster has no waker: let the operator install one and name it as waker in the cluster file "
            "(docs/how-to/autoscale.md)"
        )
    elif desired.access is None:
        problem = "everybody may call it, and only callers with a key may start replicas: set spec.access"
    elif asleep.companions:
        kind = next(iter(asleep.companions))
        problem = f"it has a {kind}, which does not sleep: leave one of the two out"
    if problem:
        raise InvalidInput(
            f"spec.predictor.minReplicas of {desired.service} is 0, but {problem}, or write 1 or more",
            field="spec.predictor.minReplicas",
        )


def refuse_unsupported(desired: Desired, of: GatewayClass, gateway: str) -> None:
    """Raise InvalidInput, naming the field, where the desired state needs features that the gateway may lack."""
    found = (
        f"class {of.name} of gateway {gateway} is not known to support"
        if of.name
        else f"gateway {gateway} was not found, so it is not known to support"
    )
    for field in policy_fields(desired):
        if POLICIES not in of.features:
            raise InvalidInput(
                f"{ASKED[field].format(desired.service)}, but {found} {POLICIES}; use Envoy Gateway, or leave it out "
                "and have a policy of your gateway's own do it",
                field=field,
            )
    for revision in desired.revisions:
        for need in _needs(revision, of):
            if need.feature not in of.features:
                raise InvalidInput(
                    f"{revision.name} is to get {need.asked}, but {found} {need.feature}; "
                    f"{need.instead}, or use another gateway",
                    field=need.field,
                )


@dataclass(frozen=True, slots=True)
class _Need:
    """A feature that a revision needs, and the remedy where it is unsupported."""

    field: str
    feature: str
    asked: str
    instead: str


def _needs(revision: DesiredRevision, of: GatewayClass) -> Iterator[_Need]:
    copies = f"copies of {revision.mirror_percent} % of the requests"
    if 0 < revision.mirror_percent < 100:
        yield _Need("mirror_percent", MIRROR_OF_A_SHARE, copies, "copy all of them (mirror: 100)")
    if revision.mirror_percent and of.is_reported:  # else all copies are tried, and the routes' status decides
        yield _Need("mirror_percent", MIRROR, copies, "roll out by weights")
    if needs_expressions(revision.match):
        asked = "the requests whose header begins like a text (prefix)"
        yield _Need("match", EXPRESSIONS, asked, "name whole values by exact or anyOf")
