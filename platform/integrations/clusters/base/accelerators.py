"""Names of GPUs and MIG slices as extended resources.

Source: NVIDIA k8s-device-plugin: `nvidia.com/gpu`; with the strategy `mixed` `nvidia.com/mig-<profile>`, whose profile
ends with `.me` where it has the media engines; time-sliced ones end with `.shared`.
"""

import re

WHOLE = "nvidia.com/gpu"
SLICE = "nvidia.com/mig-"
SHARED = ".shared"
PROFILE = r"[0-9]g\.[0-9]+gb"
"""Pattern of a MIG profile's name, such as `1g.10gb`."""
ACCELERATOR = rf"nvidia\.com/(gpu|mig-{PROFILE}(\.me)?)(\.shared)?"
"""Pattern of the extended resource of a GPU or of a slice of one."""


def is_accelerator(resource: str) -> bool:
    """Return whether an extended resource is a GPU, or a slice of one."""
    return re.fullmatch(ACCELERATOR, resource) is not None


def is_profile(name: str) -> bool:
    """Return whether this is the name of a MIG profile."""
    return re.fullmatch(PROFILE, name) is not None


def profile_of(resource: str) -> str:
    """Return the MIG profile of a slice's extended resource; empty for others."""
    return resource.removeprefix(SLICE).removesuffix(SHARED) if resource.startswith(SLICE) else ""
