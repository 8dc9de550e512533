"""RBAC rights that the driver needs, read from its role's file. Pure except for that file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from integrations.clusters.kubernetes.options import GpuAllocation, Options, Reach

IN_NAMESPACES = "fairlead-driver"
GATEWAYS = "fairlead-driver-gateways"
METRICS = "fairlead-driver-metrics"
REPLAYS = "fairlead-driver-replays"
JOBS = "fairlead-driver-jobs"
JOBS_NETWORK = "fairlead-driver-jobs-network"
KEDA = "fairlead-driver-keda"
CLAIMS = "fairlead-driver-claims"
DEVICES = "fairlead-driver-devices"
ACCESS = "fairlead-driver-access"
POOLS = "fairlead-driver-pools"
REPARTITION = "fairlead-driver-repartition"
EVICTIONS = "fairlead-driver-repartition-pods"
MIG = "fairlead-driver-repartition-mig"
_NOT_ALWAYS_EVERYWHERE = (
    *(IN_NAMESPACES, METRICS, REPLAYS, JOBS, JOBS_NETWORK, KEDA, ACCESS, POOLS, CLAIMS, DEVICES),
    *(REPARTITION, EVICTIONS, MIG),
)
_ROLE = Path(__file__).with_name("role.yaml")


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one kind of object, as RBAC names both; `resource` may name a subresource (`deployments/scale`).

    Attributes:
        name: of the only object that it covers; empty where it covers all.
    """

    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        what = f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"
        return f"{what} {self.name}" if self.name else what


SAVING_REQUESTS = frozenset(
    (
        *(Right("", "configmaps", verb) for verb in ("list", "watch")),
        Right("keda.sh", "scaledobjects", "watch"),
        *(
            Right("gateway.envoyproxy.io", policies, "watch")
            for policies in ("securitypolicies", "backendtrafficpolicies")
        ),
    )
)
"""Rights that the roles of earlier releases lack. Without them the driver asks the API server each time."""


@cache
def rights() -> Mapping[str, tuple[Right, ...]]:
    """Return the rights of each role, by the role's name."""
    roles = yaml.safe_load_all(_ROLE.read_text(encoding="utf-8"))
    return {role["metadata"]["name"]: tuple(_of_rules(role["rules"])) for role in roles}


def roles_in_namespaces(options: Options) -> list[str]:
    """Return the roles to bind in each namespace that services run in."""
    reads_by_server = options.reach is Reach.API_SERVER
    optional = {
        METRICS: reads_by_server,
        KEDA: options.keda is not None,
        CLAIMS: options.gpu_allocation is GpuAllocation.CLAIMS,
        EVICTIONS: options.repartition is not None,
    }
    return [IN_NAMESPACES, *(role for role, is_needed in optional.items() if is_needed)]


def roles_of_the_cluster() -> list[str]:
    """Return the roles bound once for every cluster; `REPARTITION` and `DEVICES` are for some."""
    return [role for role in rights() if role not in _NOT_ALWAYS_EVERYWHERE]


def _of_rules(rules: list[dict[str, Any]]) -> Iterator[Right]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for name in rule.get("resourceNames", [""]):
                    yield from (Right(group, resource, verb, name) for verb in rule["verbs"])


def is_given(right: Right, rules: list[dict[str, Any]]) -> bool:
    """Return whether one of the rules (of a SelfSubjectRulesReview) grants the right, on all objects that it covers."""
    return any(
        (not rule.get("resourceNames") or right.name in rule["resourceNames"])
        and _has(rule.get("verbs"), right.verb)
        and _has(rule.get("apiGroups"), right.group)
        and _has(rule.get("resources"), right.resource)
        for rule in rules
    )


def _has(values: list[str] | None, value: str) -> bool:
    return "*" in (values or ()) or value in (values or ())
