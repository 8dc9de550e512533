"""instance_group of config.pbtxt as frozen values: how many runs at the same time, and what each of them needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from serving_runtime.errors import ModelError

GPU_BACKENDS = ("pytorch",)


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
    where = f"model '{config.name}': instance_group"
    gpu_of(config)
    return tuple(_group(message, where) for message in config.instance_group) or (InstanceGroup(1),)


def gpu_of(config: Any) -> int | None:
    """Return the number of the GPU that a model runs on, None for the CPU; raises ModelError.

    All instances of a model are on one device; a process under MIG sees one.
    """
    where = f"model '{config.name}': instance_group"
    devices: set[int | None] = set()
    for message in config.instance_group:
        kind = _kind(message)
        if kind == "KIND_GPU" and config.backend not in GPU_BACKENDS:
            raise ModelError(f"{where} kind KIND_GPU is not supported by backend '{config.backend}'; use KIND_CPU")
        if kind not in ("KIND_AUTO", "KIND_CPU", "KIND_GPU"):
            raise ModelError(f"{where} kind {kind} is not supported; use KIND_CPU")
        if message.gpus and kind != "KIND_GPU":
            raise ModelError(f"{where} names gpus; they need kind KIND_GPU")
        devices.update((message.gpus or [0]) if kind == "KIND_GPU" else [None])
    if len(devices) > 1 or any(device is not None and device < 0 for device in devices):
        raise ModelError(f"{where} asks for several devices; one is served, the CPU or one of gpus")
    return next(iter(devices), None)


def _kind(message: Any) -> str:
    name: str = type(message).DESCRIPTOR.enum_types_by_name["Kind"].values_by_number[message.kind].name
    return name


def _group(message: Any, where: str) -> InstanceGroup:
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
