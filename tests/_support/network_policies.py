"""Evaluator of NetworkPolicies, by Kubernetes' documentation ("Network Policies"): may a pod connect to another place?

A connection needs the egress policies of its source and the ingress policies of its target. A direction that no policy
of a pod names is open, else one rule of any of its policies has to allow it. Beyond the documentation, a range of
addresses counts for pods too, as with some network plugins, and ports are numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

Json = Mapping[str, Any]
_NAME = "kubernetes.io/metadata.name"


@dataclass(frozen=True)
class Place:
    """A pod, or with an empty namespace an address outside of the cluster."""

    ip: str
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


def may_connect(policies: Sequence[Json], source: Place, target: Place, port: int = 443, protocol: str = "TCP") -> bool:
    """Return whether the policies of both ends let a connection through."""
    ends = ((source, target, "Egress", "egress", "to"), (target, source, "Ingress", "ingress", "from"))
    for pod, peer, direction, rules, peers in ends:
        own = [each["spec"] for each in policies if pod.namespace and _selects(each, pod)]
        isolating = [spec for spec in own if direction in spec["policyTypes"]]
        allowed = (rule for spec in isolating for rule in spec.get(rules) or ())
        if isolating and not any(_allows(rule, peers, pod.namespace, peer, port, protocol) for rule in allowed):
            return False
    return True


def _selects(policy: Json, pod: Place) -> bool:
    return policy["metadata"]["namespace"] == pod.namespace and _matches(policy["spec"]["podSelector"], pod.labels)


def _allows(rule: Json, peers: str, namespace: str, peer: Place, port: int, protocol: str) -> bool:
    wanted = rule.get("ports")
    fits = not wanted or any((each["port"], each["protocol"]) == (port, protocol) for each in wanted)
    named = rule.get(peers)
    return fits and (not named or any(_is(each, namespace, peer) for each in named))


def _is(wanted: Json, namespace: str, peer: Place) -> bool:
    if "ipBlock" in wanted:
        block, address = wanted["ipBlock"], ip_address(peer.ip)
        return address in ip_network(block["cidr"]) and not any(
            address in ip_network(each) for each in block.get("except", ())
        )
    if not peer.namespace:
        return False
    if "namespaceSelector" in wanted:
        is_there = _matches(wanted["namespaceSelector"], {_NAME: peer.namespace})
    else:
        is_there = peer.namespace == namespace
    return is_there and _matches(wanted.get("podSelector", {}), peer.labels)


def _matches(selector: Json, labels: Mapping[str, str]) -> bool:
    exact: Mapping[str, str] = selector.get("matchLabels") or {}
    return exact.items() <= labels.items() and all(
        _is_met(each, labels) for each in selector.get("matchExpressions") or ()
    )


def _is_met(expression: Json, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values", ())
    by_operator = {
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
    }
    return by_operator[expression["operator"]]


def pods_of(manifests: Iterable[Json], namespace: str) -> dict[str, Place]:
    """Return one pod of each object that makes pods, by the object's name; at private addresses."""
    made = [each for each in manifests if "template" in each.get("spec", {})]
    return {
        each["metadata"]["name"]: Place(f"10.244.0.{number}", namespace, each["spec"]["template"]["metadata"]["labels"])
        for number, each in enumerate(made, start=10)
    }
