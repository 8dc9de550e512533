"""GPUs of a cluster's nodes, as drivers report them, and the names of GPUs and MIG slices. Standard library only.

Source of the names: NVIDIA k8s-device-plugin: `nvidia.com/gpu`; with the strategy `mixed` `nvidia.com/mig-<profile>`,
whose profile ends with `.me` where it has the media engines; time-sliced ones end with `.shared`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

WHOLE = "nvidia.com/gpu"
SLICE = "nvidia.com/mig-"
SHARED = ".shared"
CUT_BY_CLAIMS = "dynamic"
"""`NodeGpus.strategy` where a driver cuts GPUs as pods claim slices: the free ones of each kind are alternatives."""
PROFILE = r"[0-9]g\.[0-9]+gb"
"""Pattern of a MIG profile's name, such as `1g.10gb`."""
ACCELERATOR = rf"nvidia\.com/(gpu|mig-{PROFILE}(\.me)?)(\.shared)?"
"""Pattern of the extended resource of a GPU or of a slice of one."""


@dataclass(frozen=True, slots=True)
class GpuPod:
    """A pod that holds GPUs, or slices of them.

    Attributes:
        service: NAMESPACE/NAME of the service that it is a replica of; empty for other pods.
        resource: such as `nvidia.com/mig-1g.10gb`.
        revision: of the service, whose disruption budget applies; empty for other pods.
    """

    name: str
    service: str
    resource: str
    count: int
    revision: str = ""


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """GPUs of a node by its labels and its allocatable resources.

    Attributes:
        node: its name.
        product: the label `nvidia.com/gpu.product`, such as `NVIDIA-H100-80GB-HBM3`.
        memory_mib: the label `nvidia.com/gpu.memory`; a slice's where the strategy is `single`. 0 where it is missing.
        count: the label `nvidia.com/gpu.count`; of slices where the strategy is `single`. 0 where it is missing.
        strategy: the label `nvidia.com/mig.strategy`: `none`, `single` or `mixed`; empty where it is missing. Of GPUs
            that pods claim `none`, `static`, or `CUT_BY_CLAIMS`.
        config, config_state: the requested MIG configuration and MIG manager's state of it; empty where absent.
        resources: by extended resource, how many pods may have in all.
        sharers: by extended resource, how many pods may share one GPU or slice; only resources shared by more than one,
            as far as known.
        sharing: the label `nvidia.com/gpu.sharing-strategy`: how whole GPUs are shared; empty where it is missing.
        closed: why the node accepts no GPU pod, such as `is cordoned`; empty where it does.
    """

    node: str
    product: str
    memory_mib: int
    count: int
    strategy: str
    config: str
    config_state: str
    resources: Mapping[str, int]
    pods: tuple[GpuPod, ...]
    closed: str = ""
    sharers: Mapping[str, int] = field(default_factory=dict)
    sharing: str = ""

    def devices(self, resource: str) -> int:
        """Return the number of GPUs or slices of a resource, each of which several pods may share."""
        return self.resources.get(resource, 0) // self.sharers.get(resource, 1)

    def taken(self, resource: str) -> int:
        """Return how many of a resource pods hold."""
        return sum(pod.count for pod in self.pods if pod.resource == resource)


def is_accelerator(resource: str) -> bool:
    """Return whether an extended resource is a GPU, or a slice of one."""
    return re.fullmatch(ACCELERATOR, resource) is not None


def is_profile(name: str) -> bool:
    """Return whether this is the name of a MIG profile."""
    return re.fullmatch(PROFILE, name) is not None


def profile_of(resource: str) -> str:
    """Return the MIG profile of a slice's extended resource; empty for others."""
    return resource.removeprefix(SLICE).removesuffix(SHARED) if resource.startswith(SLICE) else ""
