"""GPU scheduling of a replica with a GPU, or a slice of one: image, tolerations, node affinity. Pure.

Sources: NVIDIA's device plugin and GPU Operator (the extended resources, the taint `nvidia.com/gpu` of GPU nodes); GPU
Feature Discovery (the label `nvidia.com/gpu.product`).
"""

from common.errors import InvalidInput
from integrations.clusters.base import WHOLE, DesiredRevision, Resources
from integrations.clusters.base import profile_of as profile_of_resource
from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.options import Options

PRODUCT = "nvidia.com/gpu.product"
TOLERATED = {"key": WHOLE, "operator": "Exists", "effect": "NoSchedule"}


def image(revision: DesiredRevision, options: Options) -> str:
    """Return the runtime's image; raises InvalidInput where it needs one for GPUs and the cluster has none."""
    accelerator = revision.resources.accelerator
    if not accelerator:
        return options.runtime_image
    if not options.gpu_runtime_image:
        raise InvalidInput(
            f"{revision.name} asks for {accelerator}, and the cluster's file names no image with CUDA; apply it with "
            "gpuRuntimeImage",
            field=f"spec.predictor.model.resources.limits.{accelerator}",
        )
    return options.gpu_runtime_image


def where(resources: Resources) -> Manifest:
    """Return the fields of a pod's spec that place it on a node with the requested GPU; empty without one."""
    if not resources.accelerator:
        return {}
    fields: Manifest = {"tolerations": [TOLERATED]}
    if resources.products:
        term = {"matchExpressions": [{"key": PRODUCT, "operator": "In", "values": list(resources.products)}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        fields["affinity"] = {"nodeAffinity": required}
    return fields


def flags(resources: Resources) -> list[str]:
    """Return the runtime's flag that selects a model configuration for its slice, as `configs/1g.10gb.pbtxt`."""
    profile = profile_of(resources)
    return [f"--model-config-name={profile}"] if profile else []


def profile_of(resources: Resources) -> str:
    """Return the requested MIG profile, such as `1g.10gb`; empty for a whole GPU, and where it is open.

    With the strategy `single` slices are called `nvidia.com/gpu`, and the product names their profile.
    """
    if profile := profile_of_resource(resources.accelerator):
        return profile
    profiles = {product.removesuffix("-SHARED").partition("-MIG-")[2] for product in resources.products}
    return profiles.pop() if len(profiles) == 1 else ""
