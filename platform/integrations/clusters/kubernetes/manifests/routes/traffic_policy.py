"""Envoy Gateway's BackendTrafficPolicy of a service: limits of its requests, and V2's errors for refusals. Pure.

Limits are global ones: the rate limit service of Envoy's project counts the requests of all Envoys in Redis, in windows
of one second. A rule is shared by all routes of the service. It comes after the check of keys, so that requests that
are refused there count for none, and a caller is the name of a verified key.

While a service has no ready replica that may sleep, its requests go to its Services' addresses and not to its pods': of
routes without endpoints Envoy Gateway makes an answer with 503, and a request that Envoy holds keeps the route that it
came by. Its first connections are tried again, since each node takes up a new endpoint a moment later.

At a public service callers are not checked: all requests are one caller's, and the smaller limit of the two is theirs.
"""

import json
from collections.abc import Iterator, Mapping

from integrations.clusters.base import ANY_ORIGIN, Desired
from integrations.clusters.kubernetes.manifests.names import SERVICE_METADATA, Manifest, manifest, service_labels
from integrations.clusters.kubernetes.manifests.routes.security_policy import API, targets
from integrations.clusters.local.envoy.access import CALLER_HEADER
from integrations.clusters.local.envoy.cors import RESPONSE_HEADERS

_REFUSED = {
    401: "this service needs a valid key of this installation: send it as `Authorization: Bearer <key>`",
    403: "the key is revoked, may not call this service, or a quota of the month is used up; its team knows which",
}
_LIMITED = "too many requests: a limit of this service is reached; send fewer, and try again after a second"
_UNTIL_NEXT = {"retry-after": "1", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}
"""Headers of a refusal above a limit; a window is a second long."""
_UNAVAILABLE, _RESOURCE_EXHAUSTED = "14", "8"
TABLE_SIZE = 1021
"""Of Envoy's Maglev table: a prime, and small, since each rule of each service has a table."""
_BY_SERVICE: Manifest = {
    "type": "ConsistentHash",
    "consistentHash": {"type": "Headers", "headers": [{"name": SERVICE_METADATA}], "tableSize": TABLE_SIZE},
}
"""Envoy hashes the header as the route has set it."""
_BY_ADDRESS: Manifest = {
    "routingType": "Service",
    "retry": {
        "numRetries": 8,
        "retryOn": {"triggers": ["connect-failure"]},
        "perRetry": {"backOff": {"baseInterval": "100ms", "maxInterval": "1s"}},
    },
}
_ALLOW_ORIGIN, _EXPOSE_HEADERS = "access-control-allow-origin", "access-control-expose-headers"


def traffic_policy(desired: Desired, *, hashes: bool = False, waits: bool = False) -> list[Manifest]:
    """Return the policy of a service; none where everybody may call it, as often as they like.

    Args:
        hashes: requests of a service in a pool go to the same replica.
        waits: the gateway holds requests until the service has a ready replica.
    """
    rules = [*_rules(desired)]
    spread = hashes and any(each.pool for each in desired.revisions)
    if desired.access is None and not rules:
        return (
            [_policy(desired, {"targetSelectors": targets(desired.service), "loadBalancer": _BY_SERVICE})]
            if spread
            else []
        )
    spec: Manifest = {
        "targetSelectors": targets(desired.service),
        "mergeType": "StrategicMerge",
        "responseOverride": [*_answers(desired, is_limited=bool(rules))],
    }
    if rules:
        spec["rateLimit"] = {"global": {"rules": rules}}
    if spread:
        spec["loadBalancer"] = _BY_SERVICE
    if waits:
        spec |= _BY_ADDRESS
    return [_policy(desired, spec)]


def _policy(desired: Desired, spec: Manifest) -> Manifest:
    return manifest(API, "BackendTrafficPolicy", desired, desired.service, service_labels(desired.service), spec=spec)


def _rules(desired: Desired) -> Iterator[Manifest]:
    of_all, of_each = desired.limits.requests_per_second, desired.limits.caller_requests_per_second
    if desired.access is None:
        of_all, of_each = min((each for each in (of_all, of_each) if each is not None), default=None), None
    if of_all is not None:
        yield _rule(of_all)
    if of_each is not None:
        yield {"clientSelectors": [{"headers": [{"name": CALLER_HEADER, "type": "Distinct"}]}], **_rule(of_each)}


def _rule(per_second: int) -> Manifest:
    return {"limit": {"requests": per_second, "unit": "Second"}, "shared": True}


def _answers(desired: Desired, *, is_limited: bool) -> Iterator[Manifest]:
    """Yield V2's error objects for refusals of the gateway's own, and gRPC's status of those above a limit.

    An answer of a policy has none of the headers of the refusal: each origin whose web pages may read it has rules of
    its own.
    """
    refusals: dict[int, tuple[str, dict[str, str]]] = {}
    if desired.access is not None:
        refusals |= {status: (sentence, {}) for status, sentence in _REFUSED.items()}
    if is_limited:
        refusals[429] = (_LIMITED, _UNTIL_NEXT)
    for origin in () if desired.cors is None else desired.cors.origins:
        allowed = {} if origin == ANY_ORIGIN else {_ALLOW_ORIGIN: origin}
        for status, (sentence, headers) in refusals.items():
            pages = {_ALLOW_ORIGIN: origin, _EXPOSE_HEADERS: ", ".join(RESPONSE_HEADERS)}
            yield _answer(status, sentence, {**headers, **pages}, allowed)
    if desired.cors is None or ANY_ORIGIN not in desired.cors.origins:
        yield from (_answer(status, *refusal, {}) for status, refusal in refusals.items())
    if is_limited:
        # Envoy answers gRPC calls above a limit with UNAVAILABLE; the header is there where a limit was looked up.
        seen = {"grpc-status": _UNAVAILABLE, "x-ratelimit-remaining": "0"}
        response = {"body": _inline(_LIMITED), "header": _set({**_UNTIL_NEXT, "grpc-status": _RESOURCE_EXHAUSTED})}
        yield {"match": {"responseHeaders": _exactly(seen)}, "response": response, "source": "Local"}


def _answer(status: int, sentence: str, headers: Mapping[str, str], seen: Mapping[str, str]) -> Manifest:
    """Return the rule that answers a refusal with this status, and with the headers `seen` where there are any."""
    match: Manifest = {"statusCodes": [{"type": "Value", "value": status}]}
    if seen:
        match["responseHeaders"] = _exactly(seen)
    response: Manifest = {"contentType": "application/json", "body": _inline(json.dumps({"error": sentence}))}
    if headers:
        response["header"] = _set(headers)
    return {"match": match, "response": response, "source": "Local"}


def _inline(body: str) -> Manifest:
    return {"type": "Inline", "inline": body}


def _set(headers: Mapping[str, str]) -> Manifest:
    return {"set": [{"name": name, "value": value} for name, value in headers.items()]}


def _exactly(headers: Mapping[str, str]) -> list[Manifest]:
    return [{"name": name, "value": {"type": "Exact", "value": value}} for name, value in headers.items()]
