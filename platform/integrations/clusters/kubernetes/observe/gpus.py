"""GPU inventory of nodes and the pods that hold GPUs, from the API server. Pure.

Sources: labels of NVIDIA GPU Feature Discovery, extended resources of its device plugin (`nvidia.com/gpu`, and with the
strategy `mixed` `nvidia.com/mig-<profile>`; shared resources may keep these names, or end with `.shared`), labels of
the MIG manager of its GPU Operator.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from integrations.clusters.base import GpuPod, NodeGpus
from integrations.clusters.kubernetes.manifests.names import REVISION, SERVICE
from integrations.clusters.kubernetes.observe.nodes import is_alive, most_at_once, reasons

Json = Mapping[str, Any]
_VENDOR = "nvidia.com/"
_SHARED = ".shared"
_OWN_TAINT = "has the taint nvidia.com/gpu"  # GPU pods tolerate it


def gpus(nodes: Sequence[Json], pods: Sequence[Json]) -> tuple[NodeGpus, ...]:
    """Return the GPUs of each node with GPUs, by its name."""
    on_node: dict[str, list[GpuPod]] = defaultdict(list)
    for pod in sorted(pods, key=lambda each: (each["metadata"]["namespace"], each["metadata"]["name"])):
        if is_alive(pod) and (node := pod["spec"].get("nodeName")):
            on_node[node].extend(_wanted(pod))
    there = sorted(nodes, key=lambda each: str(each["metadata"]["name"]))
    return tuple(_gpus(each, on_node[each["metadata"]["name"]]) for each in there if _resources(each))


def gpus_of(node: Json, pods: Sequence[Json]) -> NodeGpus:
    """Return the GPUs of one node, empty where it offers none now; `pods` are those on it."""
    return _gpus(node, [wanted for pod in pods if is_alive(pod) for wanted in _wanted(pod)])


def closed(node: Json) -> str:
    """Return why a node accepts no GPU pod; empty where it does."""
    return next((why for why in reasons(node) if why != _OWN_TAINT), "")


def _gpus(node: Json, pods: Sequence[GpuPod]) -> NodeGpus:
    labels = node["metadata"].get("labels", {})
    return NodeGpus(
        node=str(node["metadata"]["name"]),
        product=labels.get("nvidia.com/gpu.product", ""),
        memory_mib=_number(labels.get("nvidia.com/gpu.memory", "")),
        count=_number(labels.get("nvidia.com/gpu.count", "")),
        strategy=labels.get("nvidia.com/mig.strategy", ""),
        config=labels.get("nvidia.com/mig.config", ""),
        config_state=labels.get("nvidia.com/mig.config.state", ""),
        resources=_resources(node),
        sharers=_sharers(node),
        sharing=labels.get("nvidia.com/gpu.sharing-strategy", ""),
        pods=tuple(pods),
        closed=closed(node),
    )


def _resources(node: Json) -> dict[str, int]:
    allocatable = node["status"].get("allocatable", {})
    return {name: _number(count) for name, count in sorted(allocatable.items()) if name.startswith(_VENDOR)}


def _sharers(node: Json) -> dict[str, int]:
    """Return how many pods may share one of a resource, by the label that counts for either of its names."""
    labels, offered = node["metadata"].get("labels", {}), _resources(node)
    shared = {name for name in offered if name.endswith(_SHARED) or f"{name}{_SHARED}" not in offered}
    counts = {name: _number(labels.get(f"{name.removesuffix(_SHARED)}.replicas", "")) for name in shared}
    return {name: count for name, count in sorted(counts.items()) if count > 1}


def _wanted(pod: Json) -> Iterator[GpuPod]:
    metadata = pod["metadata"]
    labels = metadata.get("labels", {})
    service, revision = labels.get(SERVICE, ""), labels.get(REVISION, "")
    named = f"{metadata['namespace']}/{service}" if service else ""
    spec = pod["spec"]
    containers = (*spec.get("initContainers", ()), *spec["containers"])
    for resource in sorted({name for each in containers for name in _limits(each) if name.startswith(_VENDOR)}):
        count = int(most_at_once(spec, partial(_limit, resource)))
        yield GpuPod(f"{metadata['namespace']}/{metadata['name']}", named, resource, count, revision if named else "")


def _limits(container: Json) -> Json:
    found: Json = container.get("resources", {}).get("limits", {})
    return found


def _limit(resource: str, container: Json) -> int:
    return _number(_limits(container).get(resource))


def _number(text: object) -> int:
    return int(str(text)) if str(text).isdecimal() else 0
