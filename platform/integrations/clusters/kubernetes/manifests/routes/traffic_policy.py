"""Envoy Gateway's BackendTrafficPolicy of a service: limits of its requests, and V2's errors for refusals. Pure.

Limits are global ones: the rate limit service of Envoy's project counts the requests of all Envoys in Redis, in windows
of one second. A rule is shared by all routes of the service. It comes after the check of keys, so that requests that
are refused there count for none, and a caller is the name of a verified key.

At a public service nobody checks who calls: all requests are one caller's, and the smaller limit of the two is theirs.
"""

import json
from collections.abc import Iterator

from integrations.clusters.base import Desired
from integrations.clusters.kubernetes.manifests.names import Manifest, manifest, service_labels
from integrations.clusters.kubernetes.manifests.routes.security_policy import API, targets
from integrations.clusters.local.envoy.access import CALLER_HEADER

_REFUSED = {
    401: "this service needs a valid key of this installation: send it as `Authorization: Bearer <key>`",
    403: "the key is revoked, or may not call this service; its team decides who may",
}
_LIMITED = "too many requests: a limit of this service is reached; send fewer, and try again after a second"


def traffic_policy(desired: Desired) -> list[Manifest]:
    """Return the policy of a service; none where everybody may call it, as often as they like."""
    rules = [*_rules(desired)]
    if desired.access is None and not rules:
        return []
    spec: Manifest = {
        "targetSelectors": targets(desired.service),
        "mergeType": "StrategicMerge",
        "responseOverride": [*_answers(desired, is_limited=bool(rules))],
    }
    if rules:
        spec["rateLimit"] = {"global": {"rules": rules}}
    return [
        manifest(API, "BackendTrafficPolicy", desired, desired.service, service_labels(desired.service), spec=spec)
    ]


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
    """Yield V2's error objects for refusals of the gateway's own; the statuses stay, as those of gRPC do."""
    if desired.access is not None:
        yield from (_answer(status, sentence) for status, sentence in _REFUSED.items())
    if is_limited:
        limited = _answer(429, _LIMITED)
        limited["response"]["header"] = {"set": [{"name": "retry-after", "value": "1"}]}
        yield limited


def _answer(status: int, sentence: str) -> Manifest:
    return {
        "match": {"statusCodes": [{"type": "Value", "value": status}]},
        "response": {
            "contentType": "application/json",
            "body": {"type": "Inline", "inline": json.dumps({"error": sentence})},
        },
        "source": "Local",
    }
