"""Envoy Gateway's SecurityPolicy and BackendTrafficPolicy of a service: who may call it, on all of its routes. Pure.

Both select routes by the service's label, so that a route that is added later is covered from its beginning, and a
policy without routes is harmless. The gateway verifies tokens by public keys in the policy itself:

    deny   the ids of revoked tokens
    allow  tokens for this service; where callers are named, of a named team, user or key, and of the console
    deny   everything else

A rule compares claims with whole values only, so every pattern that includes the service is listed. A public service
has no policies: those of the Gateway then count, which a policy of a route would replace.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from integrations.clusters.base import CONSOLE, Access, CallerKeys, Desired
from integrations.clusters.kubernetes.manifests.names import SERVICE, Manifest, manifest, service_labels

CALLER_HEADER, KEY_HEADER = "fairlead-caller", "fairlead-key"
"""The caller's name and the token's id, for the model; the gateway removes a client's own."""
WITHHOLD_TOKEN: Manifest = {
    "type": "RequestHeaderModifier",
    "requestHeaderModifier": {"remove": ["authorization"]},
}
"""The filter of every rule of a guarded service's routes; it runs after the token was verified."""

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

_API = "gateway.envoyproxy.io/v1alpha1"
_PROVIDER = "fairlead"
_REVOKED = "revoked-"
_IDS_IN_A_RULE = 100
"""An expression has 4,096 characters at most, and an id 32."""
_REFUSALS = {
    401: "this service needs a valid key of this installation: send it as `Authorization: Bearer <key>`",
    403: "the key is revoked, or may not call this service; its team decides who may",
}


def policies(desired: Desired, keys: CallerKeys) -> list[Manifest]:
    """Return the policies of a service; none where everybody may call it."""
    if desired.access is None:
        return []
    name, labels = desired.service, service_labels(desired.service)
    targets = {"targetSelectors": _targets(name)}
    guard = {**targets, **_guard(list(_callers(desired.access, f"{desired.namespace}/{name}")), keys)}
    answers = {**targets, "mergeType": "StrategicMerge", "responseOverride": [*_answers()]}
    return [
        manifest(_API, "SecurityPolicy", desired, name, labels, spec=guard),
        manifest(_API, "BackendTrafficPolicy", desired, name, labels, spec=answers),
    ]


def with_keys(live: dict[str, Any], keys: CallerKeys) -> Manifest | None:
    """Return a SecurityPolicy of ours with other keys; None where it has these already."""
    found = live["spec"]
    rules = found.get("authorization", {}).get("rules", ())
    wanted = _guard([rule for rule in rules if not rule.get("name", "").startswith(_REVOKED)], keys)
    if all(found.get(name) == part for name, part in wanted.items()):
        return None
    known = live["metadata"]
    metadata = {name: known[name] for name in ("name", "namespace", "labels", "ownerReferences")}
    spec = {"targetSelectors": found["targetSelectors"], **wanted}
    return {"apiVersion": _API, "kind": "SecurityPolicy", "metadata": metadata, "spec": spec}


def patterns_including(key: str) -> list[str]:
    """Return every pattern of a token that includes the service, as `access.domain.patterns` has them.

    default/abc: `*`, `default/*`, `default/a*`, `default/ab*`, `default/abc*`, `default/abc`
    """
    namespace, _, service = key.partition("/")
    return ["*", *(f"{namespace}/{service[:length]}*" for length in range(len(service) + 1)), key]


def _targets(service: str) -> list[Manifest]:
    group, labels = "gateway.networking.k8s.io", {SERVICE: service}
    return [{"group": group, "kind": kind, "matchLabels": labels} for kind in ("HTTPRoute", "GRPCRoute")]


def _guard(callers: list[Manifest], keys: CallerKeys) -> Manifest:
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
        "claimToHeaders": [{"header": CALLER_HEADER, "claim": "sub"}, {"header": KEY_HEADER, "claim": "jti"}],
    }
    return {
        "jwt": {"providers": [provider]},
        "authorization": {"defaultAction": "Deny", "rules": [*_revoked(keys.revoked), *callers]},
    }


def _revoked(ids: tuple[str, ...]) -> Iterator[Manifest]:
    """Yield the rules for revoked tokens. All ids have one length, so that none is a part of two others."""
    for first in range(0, len(ids), _IDS_IN_A_RULE):
        some = json.dumps(" ".join(ids[first : first + _IDS_IN_A_RULE]))
        expression = f'{some}.contains(request.headers["{KEY_HEADER}"])'
        yield {"name": f"{_REVOKED}{first // _IDS_IN_A_RULE + 1}", "action": "Deny", "cel": expression}


def _callers(access: Access, key: str) -> Iterator[Manifest]:
    """Yield the rules for callers; one is enough."""
    needed = {"name": "services", "valueType": "StringArray", "values": patterns_including(key)}
    if access == Access():
        yield _allow("callers", needed)
        return
    for claim, values in (("team", access.teams), ("user", access.users), ("sub", (*access.keys, CONSOLE))):
        if values:
            yield _allow(f"callers-{claim}", needed, {"name": claim, "valueType": "String", "values": [*values]})


def _allow(name: str, *claims: Manifest) -> Manifest:
    return {
        "name": name,
        "action": "Allow",
        "principal": {"jwt": {"provider": _PROVIDER, "claims": list(claims)}},
    }


def _answers() -> Iterator[Manifest]:
    """Yield V2's error objects for refusals of the gateway's own; the statuses stay, as those of gRPC do."""
    for status, sentence in _REFUSALS.items():
        body = {"type": "Inline", "inline": json.dumps({"error": sentence})}
        yield {
            "match": {"statusCodes": [{"type": "Value", "value": status}]},
            "response": {"contentType": "application/json", "body": body},
            "source": "Local",
        }
