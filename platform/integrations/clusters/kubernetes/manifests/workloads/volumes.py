"""Sizes of the volumes on nodes' disks (`emptyDir`) that pods write to, and requests for disk. Pure.

A pod that writes more is evicted, so that it cannot fill its node's disk; the scheduler places it where its requests
fit. Pods of earlier releases have neither, and get them with their service's next revision.
"""

import math
import re

from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.options import Options

TMP_GIB = 4
"""For what libraries put into /tmp, such as compiled kernels."""
REQUEST_GIB = 1
_SLACK_GIB, _LOGS_MIB = 1, 64
_SIZE = re.compile(r"([0-9]{1,9})Gi")
_REQUESTED = "0"  # else Kubernetes would take the limit as the request, and few nodes have as much
_DISK = "ephemeral-storage"


def models_gib(options: Options, model_bytes: int = 0) -> int:
    """Return the size of a volume for a model: while it is fetched its archive and its files are both there.

    Args:
        model_bytes: 0 is the largest model that is allowed.
    """
    return math.ceil(2 * (model_bytes or options.max_model_bytes) / 2**30) + _SLACK_GIB


def with_disk(resources: Manifest, needed_bytes: int) -> Manifest:
    """Return a container's resources with a request for so much disk and some more for logs; unchanged for 0."""
    if not needed_bytes:
        return resources
    mib = math.ceil(needed_bytes / 2**20) + _LOGS_MIB
    return resources | {"requests": {**resources["requests"], _DISK: f"{mib}Mi"}}


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
    limits = {_DISK: limit, **resources.get("limits", {})}
    return container | {"resources": {**resources, "requests": requests, "limits": limits}}
