"""What the driver must be allowed to do: its role's file, read. Pure but for that file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from integrations.clusters.kubernetes.options import Options, Reach

IN_NAMESPACES = "fairlead-driver"
METRICS = "fairlead-driver-metrics"
REPLAYS = "fairlead-driver-replays"
JOBS = "fairlead-driver-jobs"
KEDA = "fairlead-driver-keda"
_BOUND_IN_NAMESPACES = (IN_NAMESPACES, METRICS, REPLAYS, JOBS, KEDA)
_ROLE = Path(__file__).with_name("role.yaml")


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one kind of object, as RBAC names both; `resource` may name a subresource (`deployments/scale`)."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


@cache
def rights() -> Mapping[str, tuple[Right, ...]]:
    """Return the rights of each role, by the role's name."""
    roles = yaml.safe_load_all(_ROLE.read_text(encoding="utf-8"))
    return {role["metadata"]["name"]: tuple(_of_rules(role["rules"])) for role in roles}


def roles_in_namespaces(options: Options) -> list[str]:
    """Return the roles that have to be bound in each namespace that services run in."""
    reads_by_server = options.reach is Reach.API_SERVER
    return [IN_NAMESPACES, *([METRICS] if reads_by_server else []), *([KEDA] if options.keda is not None else [])]


def roles_of_the_cluster() -> list[str]:
    """Return the roles that are bound once for the cluster."""
    return [role for role in rights() if role not in _BOUND_IN_NAMESPACES]


def _of_rules(rules: list[dict[str, Any]]) -> Iterator[Right]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from (Right(group, resource, verb) for verb in rule["verbs"])


def is_given(right: Right, rules: list[dict[str, Any]]) -> bool:
    """Return whether one of the rules (of a SelfSubjectRulesReview) gives the right on objects of every name."""
    return any(
        not rule.get("resourceNames")
        and _has(rule.get("verbs"), right.verb)
        and _has(rule.get("apiGroups"), right.group)
        and _has(rule.get("resources"), right.resource)
        for rule in rules
    )


def _has(values: list[str] | None, value: str) -> bool:
    return "*" in (values or ()) or value in (values or ())
