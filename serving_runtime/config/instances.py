"""instance_group of config.pbtxt as frozen values: how many runs at the same time, and what each of them needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from serving_runtime.errors import ModelError


@dataclass(frozen=True, slots=True)
class InstanceGroup:
    """Instances that are alike.

    Attributes:
        resources: how much of each a run takes, by name (Triton: rate limiter).
        priority: 1 is the highest; a run of priority 2 gets half the chances of one of 1.
    """

    count: int
    resources: Mapping[str, int] = field(default_factory=dict)
    priority: int = 1


def instance_groups(config: Any) -> tuple[InstanceGroup, ...]:
    """Return the instance groups of a ModelConfig message, at least one; raises ModelError."""
    return tuple(_group(message, f"model '{config.name}': instance_group") for message in config.instance_group) or (
        InstanceGroup(1),
    )


def _group(message: Any, where: str) -> InstanceGroup:
    kind = type(message).DESCRIPTOR.enum_types_by_name["Kind"].values_by_number[message.kind].name
    if kind not in ("KIND_AUTO", "KIND_CPU"):
        raise ModelError(f"{where} kind {kind} is not supported; use KIND_CPU")
    if message.count < 0:
        raise ModelError(f"{where} count must be >= 0, found {message.count}")
    limiter = message.rate_limiter
    resources: dict[str, int] = {}
    for resource in limiter.resources:
        if not resource.name:
            raise ModelError(f"{where}: a resource of rate_limiter must have a name")
        if resource.name in resources:
            raise ModelError(f"{where}: rate_limiter names resource '{resource.name}' twice")
        resources[resource.name] = resource.count
    return InstanceGroup(message.count or 1, resources, limiter.priority or 1)
