"""Envoy Gateway's SecurityPolicy of a service: who may call it, and from which web pages, on all routes. Pure.

It selects routes by the service's label, so that a route that is added later is covered from its beginning, and a
policy without routes is harmless. The gateway verifies tokens by public keys in the policy itself:

    deny   the ids of revoked tokens; teams and keys whose quota is used up, and everybody where the service's is
    allow  tokens for this service; where callers are named, of a named team, user or key, and of the console
    deny   everything else

Of a service that may sleep the policy has Envoy ask the waker first (`waker/`), whether it is asleep or not: each such
policy is a filter of the listener, and a change of these ends its connections. Without an answer requests go on.

A rule compares claims with whole values only, so every pattern that includes the service is listed. A public service
has a policy only for web pages of other origins (CORS), merged into that of the Gateway, which it would replace else.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from integrations.clusters.base import CONSOLE, Access, CallerKeys, Cors, Desired
from integrations.clusters.kubernetes.manifests.names import SERVICE, Manifest, manifest, service_labels
from integrations.clusters.kubernetes.options import WakerReference
from integrations.clusters.local.envoy.access import (
    CALLER_HEADER,
    KEY_HEADER,
    OURS,
    TEAM_HEADER,
)
from integrations.clusters.local.envoy.cors import METHODS, REQUEST_HEADERS, RESPONSE_HEADERS

_CLAIMS = {CALLER_HEADER: "sub", KEY_HEADER: "jti", TEAM_HEADER: "team"}
"""Headers for the model, by the claim that each has; the gateway removes a client's own."""


def _without(*headers: str) -> Manifest:
    return {"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": [*headers]}}


WITHHOLD_TOKEN = _without("authorization", *(name for name in OURS if name not in _CLAIMS))
"""The filter of every rule of a guarded service's routes; it runs after the token was verified."""


def withholding_callers(route: Manifest) -> Manifest:
    """Return a public service's route with rules that remove names of callers, which are not checked there.

    Patches come first: a rule may have one filter of this type, so its own, from a patch, removes them too.
    """
    return {**route, "spec": {**route["spec"], "rules": [_withholding(rule) for rule in route["spec"]["rules"]]}}


def _withholding(rule: Manifest) -> Manifest:
    filters = list(rule.get("filters") or ())
    own = next((each for each in filters if each.get("type") == "RequestHeaderModifier"), None)
    if own is None:
        return {**rule, "filters": [_without(*OURS), *filters]}
    said = own.get("requestHeaderModifier")
    said = said if isinstance(said, Mapping) else {}
    removed = [*OURS, *(name for name in said.get("remove") or () if name not in OURS)]
    merged = {**own, "requestHeaderModifier": {**said, "remove": removed}}
    return {**rule, "filters": [merged if each is own else each for each in filters]}


PLACEHOLDER: Mapping[str, str] = {
    "kty": "EC",
    "crv": "P-256",
    "alg": "ES256",
    "use": "sig",
    "kid": "placeholder",
    "x": "-wKX_E1R8AFCjj2t2CfUV7utq_iUFwPFU2BTirbOTR0",
    "y": "Um7KOWcDwOPkv6zhxF_x-padGuwIfwrE6FjhK46tSRk",
}
"""A public key without a private one: its x is the SHA-256 of the text `fairlead: no private key 5`, the first of these
on the curve. Envoy rejects the whole listener where a policy has no public key, and goes on without the policy.
"""

API = "gateway.envoyproxy.io/v1alpha1"
_PROVIDER = "fairlead"
_REVOKED, _QUOTA = "revoked-", "quota-"
_IDS_IN_A_RULE = 100
"""An expression has 4,096 characters at most, and an id 32."""
_NAMES_IN_A_RULE = 100
"""A claim is compared with 128 values at most."""


_WAKER_TIMEOUT = "65s"
"""Longer than a request waits, so that the waker's sentence is the answer."""


def security_policy(desired: Desired, keys: CallerKeys, waker: WakerReference | None = None) -> list[Manifest]:
    """Return the policy of a service; none where everybody may call it, and no web page of another origin."""
    if desired.access is None and desired.cors is None:
        return []
    name, labels = desired.service, service_labels(desired.service)
    spec: Manifest = {"targetSelectors": targets(name)}
    if desired.cors is not None:
        spec["cors"] = _cors(desired.cors)
    if desired.access is None:
        spec["mergeType"] = "StrategicMerge"
    else:
        key = f"{desired.namespace}/{name}"
        spec |= _guard(list(_callers(desired.access, key)), keys, key)
        if waker is not None:
            spec |= _waking(desired, waker)
    return [manifest(API, "SecurityPolicy", desired, name, labels, spec=spec)]


def with_keys(live: dict[str, Any], keys: CallerKeys) -> Manifest | None:
    """Return a SecurityPolicy of ours with other keys; None where it has these already, or checks no callers."""
    found = live["spec"]
    if "jwt" not in found and "authorization" not in found:
        return None
    rules = found.get("authorization", {}).get("rules", ())
    known = live["metadata"]
    callers = [rule for rule in rules if not rule.get("name", "").startswith((_REVOKED, _QUOTA))]
    wanted = _guard(callers, keys, f"{known['namespace']}/{known['name']}")
    if all(found.get(name) == part for name, part in wanted.items()):
        return None
    metadata = {name: known[name] for name in ("name", "namespace", "labels", "ownerReferences") if name in known}
    spec = {name: found[name] for name in ("targetSelectors", "cors", "extAuth") if name in found} | wanted
    return {"apiVersion": API, "kind": "SecurityPolicy", "metadata": metadata, "spec": spec}


def patterns_including(key: str) -> list[str]:
    """Return every pattern of a token that includes the service, as `access.domain.patterns` has them.

    default/abc: `*`, `default/*`, `default/a*`, `default/ab*`, `default/abc*`, `default/abc`
    """
    namespace, _, service = key.partition("/")
    return ["*", *(f"{namespace}/{service[:length]}*" for length in range(len(service) + 1)), key]


def targets(service: str) -> list[Manifest]:
    """Return the selectors of all routes of a service."""
    group, labels = "gateway.networking.k8s.io", {SERVICE: service}
    return [{"group": group, "kind": kind, "matchLabels": labels} for kind in ("HTTPRoute", "GRPCRoute")]


def _waking(desired: Desired, waker: WakerReference) -> Manifest:
    """Return the part by which requests wait for a revision that sleeps; empty where none may."""
    asleep = next((each for each in desired.revisions if each.may_sleep), None)
    if asleep is None:
        return {}
    named = {"namespace": desired.namespace, "service": desired.service, "revision": asleep.name}
    backend = {"group": "", "kind": "Service", "name": waker.name, "namespace": waker.namespace, "port": waker.port}
    return {
        "extAuth": {
            "grpc": {"backendRefs": [backend]},
            "headersToExtAuth": ["authorization"],
            "contextExtensions": [{"name": name, "type": "Value", "value": value} for name, value in named.items()],
            "timeout": _WAKER_TIMEOUT,
            "failOpen": True,
        }
    }


def _guard(callers: list[Manifest], keys: CallerKeys, key: str) -> Manifest:
    """Return the parts of the policy that depend on keys; without public keys no token is valid."""
    provider = {
        "name": _PROVIDER,
        "issuer": keys.issuer,
        "audiences": [keys.audience],
        "localJWKS": {
            "type": "Inline",
            "inline": json.dumps({"keys": [dict(each) for each in keys.public or (PLACEHOLDER,)]}, sort_keys=True),
        },
        "extractFrom": {"headers": [{"name": "authorization", "valuePrefix": "Bearer "}]},
        "claimToHeaders": [{"header": header, "claim": claim} for header, claim in _CLAIMS.items()],
    }
    return {
        "jwt": {"providers": [provider]},
        "authorization": {"defaultAction": "Deny", "rules": [*_revoked(keys.revoked), *_quotas(keys, key), *callers]},
    }


def _revoked(ids: tuple[str, ...]) -> Iterator[Manifest]:
    """Yield the rules for revoked tokens. All ids have one length, so that none is a part of two others."""
    for first in range(0, len(ids), _IDS_IN_A_RULE):
        some = json.dumps(" ".join(ids[first : first + _IDS_IN_A_RULE]))
        expression = f'{some}.contains(request.headers["{KEY_HEADER}"])'
        yield {"name": f"{_REVOKED}{first // _IDS_IN_A_RULE + 1}", "action": "Deny", "cel": expression}


def _quotas(keys: CallerKeys, key: str) -> Iterator[Manifest]:
    """Yield the rules for quotas that are used up: of teams, of keys, and of the service."""
    for claim, names in (("team", keys.exhausted), ("sub", keys.exhausted_keys)):
        for first in range(0, len(names), _NAMES_IN_A_RULE):
            values = [*names[first : first + _NAMES_IN_A_RULE]]
            name = f"{_QUOTA}{claim}-{first // _NAMES_IN_A_RULE + 1}"
            yield _rule(name, "Deny", {"name": claim, "valueType": "String", "values": values})
    if key in keys.exhausted_services:
        yield {"name": f"{_QUOTA}service", "action": "Deny", "cel": "true"}


def _callers(access: Access, key: str) -> Iterator[Manifest]:
    """Yield the rules for callers; one is enough."""
    needed = {"name": "services", "valueType": "StringArray", "values": patterns_including(key)}
    if access == Access():
        yield _rule("callers", "Allow", needed)
        return
    for claim, values in (("team", access.teams), ("user", access.users), ("sub", (*access.keys, CONSOLE))):
        if values:
            named = {"name": claim, "valueType": "String", "values": [*values]}
            yield _rule(f"callers-{claim}", "Allow", needed, named)


def _rule(name: str, action: str, *claims: Manifest) -> Manifest:
    return {
        "name": name,
        "action": action,
        "principal": {"jwt": {"provider": _PROVIDER, "claims": list(claims)}},
    }


def _cors(cors: Cors) -> Manifest:
    return {
        "allowOrigins": [*cors.origins],
        "allowMethods": [*METHODS],
        "allowHeaders": [*REQUEST_HEADERS],
        "exposeHeaders": [*RESPONSE_HEADERS],
        "maxAge": f"{cors.max_age_s}s",
    }
