"""Sizes of the volumes on nodes' disks (`emptyDir`) that pods write to. Pure.

A pod that writes more is evicted, so that it cannot fill its node's disk. The size is fixed when a Deployment is made:
another would replace all its pods. Those of earlier releases have none, and get one with their service's next revision.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.options import Options

TMP_GIB = 4
"""For what libraries put into /tmp, such as compiled kernels."""
REQUEST_GIB = 1
_SLACK_GIB = 1
_SIZE = re.compile(r"([0-9]{1,9})Gi")
_REQUESTED = "0"  # else Kubernetes would take the limit as the request, and few nodes have as much
_DISK, _FIXED = "ephemeral-storage", ("models", "prepare-tmp", "tmp")


def models_gib(options: Options) -> int:
    """Return the size of a volume for a model: while it is fetched its archive and its files are both there."""
    return math.ceil(2 * options.max_model_bytes / 2**30) + _SLACK_GIB


def empty(name: str, size_gib: int) -> Manifest:
    """Return a volume that is empty at the pod's start."""
    return {"name": name, "emptyDir": {"sizeLimit": f"{size_gib}Gi"}}


def with_disk_limits(pod: Manifest) -> Manifest:
    """Return a job's pod whose containers may use as much disk as its volumes may hold, and some more for logs.

    One with a volume of a size that only a patch can have set stays as it is.
    """
    places = [each["emptyDir"] for each in pod["volumes"] if "emptyDir" in each]
    sizes = [_SIZE.fullmatch(str(each.get("sizeLimit"))) for each in places if each.get("medium") != "Memory"]
    known = [int(size[1]) for size in sizes if size is not None]
    if len(known) < len(sizes):
        return pod
    limit = f"{sum(known) + _SLACK_GIB}Gi"
    return pod | {kind: [_limited(each, limit) for each in pod[kind]] for kind in ("initContainers", "containers")}


def _limited(container: Manifest, limit: str) -> Manifest:
    resources = container.get("resources", {})
    requests = {_DISK: _REQUESTED, **resources.get("requests", {})}
    return container | {"resources": {"requests": requests, "limits": {_DISK: limit, **resources.get("limits", {})}}}


def keep_sizes(manifests: Iterable[Manifest], there: Iterable[Mapping[str, Any]]) -> None:
    """Set the sizes of volumes in Deployments to those on the cluster, in place.

    Args:
        there: the Deployments on the cluster.
    """
    known = {each["metadata"]["name"]: _sizes(each) for each in there}
    for manifest in manifests:
        sizes = known.get(manifest["metadata"]["name"]) if manifest["kind"] == "Deployment" else None
        if sizes is None:
            continue
        for volume in _empty(manifest):
            if volume["name"] in _FIXED and volume["name"] in sizes:
                size = sizes[volume["name"]]
                others = {key: value for key, value in volume["emptyDir"].items() if key != "sizeLimit"}
                volume["emptyDir"] = others | ({"sizeLimit": size} if size else {})


def _sizes(deployment: Mapping[str, Any]) -> dict[str, str]:
    """Return the size of each `emptyDir` of a Deployment's pods; empty for one without."""
    return {each["name"]: each["emptyDir"].get("sizeLimit", "") for each in _empty(deployment)}


def _empty(deployment: Mapping[str, Any]) -> list[Manifest]:
    """Return the `emptyDir` volumes of a Deployment, which patches can have given any shape."""
    found: Any = deployment
    for name in ("spec", "template", "spec", "volumes"):
        found = found.get(name) if isinstance(found, Mapping) else None
    volumes = [each for each in (found if isinstance(found, list) else ()) if isinstance(each, dict)]
    return [each for each in volumes if isinstance(each.get("emptyDir"), dict) and "name" in each]
