"""Instance groups: instance_group of config.pbtxt as frozen values: concurrent runs, devices, and resources."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from serving_runtime.common.errors import ModelError

GPU_BACKENDS = ("onnxruntime", "pytorch", "tensorrt")
_PROFILED = "tensorrt"
_KINDS = ("KIND_AUTO", "KIND_CPU", "KIND_GPU")


@dataclass(frozen=True, slots=True)
class InstanceGroup:
    """A group of equal instances.

    Attributes:
        count: of all its devices together.
        resources: how much of each a run takes, by name (Triton: rate limiter).
        priority: 1 is the highest; a run of priority 2 gets half the chances of one of 1.
    """

    count: int
    resources: Mapping[str, int] = field(default_factory=dict)
    priority: int = 1


def instance_groups(config: Any) -> tuple[InstanceGroup, ...]:
    """Return the instance groups of a ModelConfig message, at least one; raises ModelError."""
    where = f"model '{config.name}': instance_group"
    check_kinds(config)
    return tuple(_group(message, where) for message in config.instance_group) or (InstanceGroup(1),)


def check_kinds(config: Any) -> None:
    """Raise ModelError for a kind or for GPU numbers that no machine could serve."""
    where = f"model '{config.name}': instance_group"
    for message in config.instance_group:
        kind = kind_of(message)
        if kind not in _KINDS:
            raise ModelError(f"{where} kind {kind} is not supported; use KIND_AUTO, KIND_CPU or KIND_GPU")
        if kind == "KIND_GPU" and config.backend not in GPU_BACKENDS:
            raise ModelError(f"{where} kind KIND_GPU is not supported by backend '{config.backend}'; use KIND_CPU")
        if message.gpus and kind == "KIND_CPU":
            raise ModelError(f"{where} names gpus; they need kind KIND_GPU")
        if message.profile and config.backend != _PROFILED:
            raise ModelError(f"{where} profile is of TensorRT's plans; backend '{config.backend}' has none")
        if any(gpu < 0 for gpu in message.gpus) or len(set(message.gpus)) < len(message.gpus):
            raise ModelError(f"{where} gpus must be different numbers from 0, found {list(message.gpus)}")


def kind_of(message: Any) -> str:
    """Return the name of an instance group's kind."""
    name: str = type(message).DESCRIPTOR.enum_types_by_name["Kind"].values_by_number[message.kind].name
    return name


def count_by_gpu(config: Any) -> dict[int | None, int]:
    """Return the number of instances of a ModelConfig message on each GPU, by its number; None is the CPU.

    Groups of KIND_AUTO count for the CPU: on machines with GPUs they were replaced by KIND_GPU.
    """
    counts: dict[int | None, int] = {}
    for message in config.instance_group:
        for device in message.gpus if kind_of(message) == "KIND_GPU" else (None,):
            counts[device] = counts.get(device, 0) + (message.count or 1)
    return counts or {None: 1}


def profiles_of(config: Any) -> tuple[str, ...]:
    """Return the optimization profiles that the groups of a ModelConfig message list, each once."""
    return tuple(dict.fromkeys(name for message in config.instance_group for name in message.profile))


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
    devices = len(message.gpus) if kind_of(message) == "KIND_GPU" else 1
    return InstanceGroup((message.count or 1) * max(devices, 1), resources, limiter.priority or 1)
