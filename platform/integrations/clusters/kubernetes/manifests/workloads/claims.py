"""ResourceClaimTemplate of a replica's GPU: Dynamic Resource Allocation in place of extended resources. Pure.

Sources: Kubernetes, "Dynamic Resource Allocation" (`resource.k8s.io/v1`, from 1.34); NVIDIA's DRA driver for GPUs (its
device classes, and the attributes of its devices).

A service file, the placement and the database name the GPU by its extended resource in either case. A pod template and
its ResourceClaimTemplate go together: where a pinned one has no claim, none is rendered.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from common.errors import InvalidInput
from integrations.clusters.base import SHARED, Desired, DesiredRevision, Resources
from integrations.clusters.kubernetes.manifests.names import Manifest, manifest, revision_labels
from integrations.clusters.kubernetes.manifests.workloads.accelerators import TOLERATED, profile_of
from integrations.clusters.kubernetes.manifests.workloads.secure import CLAIM
from integrations.clusters.kubernetes.options import GpuAllocation, Options

API = "resource.k8s.io/v1"
KIND = "ResourceClaimTemplate"
DRIVER = "gpu.nvidia.com"
WHOLE_CLASS, SLICE_CLASS = "gpu.nvidia.com", "mig.nvidia.com"
CLASSES = (WHOLE_CLASS, SLICE_CLASS)
_ATTRIBUTES = f"device.attributes['{DRIVER}']"


def where(resources: Resources, name: str) -> Manifest:
    """Return the fields of a pod's spec that claim a GPU; the claim alone decides which nodes have one."""
    claims = [{"name": CLAIM, "resourceClaimTemplateName": name}]
    return {"tolerations": [TOLERATED], "resourceClaims": claims} if resources.accelerator else {}


def is_claimed(template: Mapping[str, Any], name: str) -> bool:
    """Return whether a pod template takes a claim from the ResourceClaimTemplate of this name."""
    claims = (template.get("spec") or {}).get("resourceClaims") or ()
    return any(each.get("resourceClaimTemplateName") == name for each in claims)


def are_used(desired: Desired, options: Options) -> bool:
    """Return whether replicas claim GPUs: by the cluster file, or by a pod template that was pinned when it did."""
    by_file = options.gpu_allocation is GpuAllocation.CLAIMS
    return any(
        (by_file and revision.resources.accelerator)
        or any(is_claimed(template, revision.name) for template in revision.pod_templates.values())
        for revision in desired.revisions
    )


def with_templates(desired: Desired, manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return the manifests with a ResourceClaimTemplate before each Deployment whose pod template takes claims of it.

    Those that are there already are replaced, since a Deployment may have got another pod template meanwhile.
    """
    by_name, found = {each.name: each for each in desired.revisions}, []
    for each in manifests:
        revision = by_name.get(each["metadata"]["name"]) if each["kind"] == "Deployment" else None
        if revision is not None and is_claimed(each["spec"]["template"], revision.name):
            found.append(_of_revision(desired, revision))
        if each["kind"] != KIND:
            found.append(each)
    return found


def of_job(job: Manifest, resources: Resources) -> list[Manifest]:
    """Return the ResourceClaimTemplate of a Job whose pod claims a GPU, which is deleted with it.

    Args:
        job: as the API server made it; its pod waits for the template.
    """
    metadata = job["metadata"]
    if not is_claimed(job["spec"]["template"], metadata["name"]):
        return []
    owner = {"apiVersion": job["apiVersion"], "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
    known = {name: metadata[name] for name in ("name", "namespace", "labels")}
    return [
        {"apiVersion": API, "kind": KIND, "metadata": {**known, "ownerReferences": [owner]}, "spec": _spec(resources)}
    ]


def refuse_shared(resources: Resources, options: Options) -> None:
    """Raise InvalidInput where a shared resource is requested, which the device plugin alone has."""
    if options.gpu_allocation is GpuAllocation.CLAIMS and resources.accelerator.endswith(SHARED):
        raise InvalidInput(
            f"{resources.accelerator} is shared by the device plugin, and the cluster's file has gpuAllocation: "
            f"claims, by which each replica has its own; request {resources.accelerator.removesuffix(SHARED)}",
            field=f"spec.predictor.model.resources.limits.{resources.accelerator}",
        )


def _of_revision(desired: Desired, revision: DesiredRevision) -> Manifest:
    labels = revision_labels(desired.service, revision.name)
    return manifest(API, KIND, desired, revision.name, labels, spec=_spec(revision.resources))


def _spec(resources: Resources) -> Manifest:
    """Return the claim of one device: a whole GPU or a MIG slice, of one of the products."""
    profile, products = profile_of(resources), resources.products
    conditions = []
    if profile:
        conditions.append(f"{_ATTRIBUTES}.profile == {json.dumps(profile.replace('.me', '+me'))}")
    if products:
        # Products are named as GPU Feature Discovery labels nodes: with hyphens for spaces.
        boards = sorted({each.removesuffix("-SHARED").partition("-MIG-")[0] for each in products})
        conditions.append(f"{_ATTRIBUTES}.productName.replace(' ', '-') in {json.dumps(boards)}")
    exactly: Manifest = {"deviceClassName": SLICE_CLASS if profile else WHOLE_CLASS}
    if conditions:
        exactly["selectors"] = [{"cel": {"expression": each}} for each in conditions]
    exactly |= {"allocationMode": "ExactCount", "count": 1}
    return {"spec": {"devices": {"requests": [{"name": CLAIM, "exactly": exactly}]}}}
