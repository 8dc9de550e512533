"""Resource offers: GPUs and MIG slices that nodes offer to pods, and which nodes can be repartitioned. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from integrations.clusters.base import SLICE, WHOLE, GpuPod, NodeGpus
from placement.gpu_nodes import MigNode, Tenant
from placement.inventory import cut_of
from placement.mig.geometry import Geometry, geometry_of, usable_bytes
from placement.slices.slice_types import Demand

_SHARED = ".shared"
_MPS = "mps"
"""The strategy that limits each process to its part of the memory; the device plugin has it for whole GPUs only."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One extended resource of one node.

    Attributes:
        label: of the node, `nvidia.com/gpu.product`.
        product: as known here, such as `H100-80GB`; empty for one that is not.
        profile: of the MIG slice; empty for whole GPUs.
        sharers: how many pods may share one GPU or slice; 1 where one pod has it alone, 0 where unknown.
        is_held: whether a pod is limited to its part of the memory, where it is shared.
        memory_bytes: of one process; an equal part each where several share; 0 where unknown.
        share: the fraction of a GPU that one takes, 0 to 1.
        free: how many have no pod; 0 on a node that accepts no pods.
    """

    node: str
    label: str
    product: str
    resource: str
    profile: str
    memory_bytes: int
    compute_slices: int
    share: float
    total: int
    free: int
    sharers: int = 1
    is_held: bool = True


def offers(seen: Sequence[NodeGpus], *, leaving: str = "") -> tuple[Offer, ...]:
    """Return the offers of each node.

    Args:
        leaving: NAMESPACE/NAME of a service whose pods make room; empty for none.
    """
    return tuple(offer for node in seen for offer in _offers(node, leaving))


def mig_nodes(seen: Sequence[NodeGpus], *, leaving: str = "", promised: str = "") -> tuple[MigNode, ...]:
    """Return the nodes of the strategy `mixed` whose GPUs can be partitioned, in their present state.

    Args:
        leaving: as of `offers`.
        promised: a resource whose free units are all reserved already.
    """
    found = (_mig_node(node, leaving) for node in seen if node.strategy == "mixed")
    return tuple(_promising(node, promised) for node in found if node is not None)


def demand_for(resource: str, name: str, replicas: int) -> Demand:
    """Return the demand of replicas that request a resource: just such a slice, or a whole GPU, which no cut makes."""
    profile = resource.removeprefix(SLICE) if resource.startswith(SLICE) else ""
    return Demand(name, replicas, 0, profile=profile or WHOLE)


def _offers(node: NodeGpus, leaving: str) -> Iterator[Offer]:
    geometry = geometry_of(node.product, node.memory_mib)
    for resource, total in sorted(node.resources.items()):
        profile = _profile(node, resource)
        taken = sum(pod.count for pod in node.pods if pod.resource == resource and _stays(pod, leaving))
        memory_bytes, compute_slices, share = _size(geometry, profile)
        is_shared = resource.endswith(_SHARED) or node.product.endswith("-SHARED")
        sharers = node.sharers.get(resource, 0 if is_shared else 1)
        yield Offer(
            node=node.node,
            label=node.product,
            product=geometry.product if geometry else "",
            resource=resource,
            profile=profile,
            memory_bytes=memory_bytes // sharers if sharers else 0,
            compute_slices=compute_slices,
            share=share / (sharers or 1),
            total=total,
            free=0 if node.closed else max(0, total - taken),
            sharers=sharers,
            is_held=sharers == 1 or (node.sharing == _MPS and not profile),
        )


def _profile(node: NodeGpus, resource: str) -> str:
    if resource.startswith(SLICE):
        return resource.removeprefix(SLICE).removesuffix(_SHARED)
    return node.product.removesuffix("-SHARED").partition("-MIG-")[2]


def _size(geometry: Geometry | None, profile: str) -> tuple[int, int, float]:
    """Return memory, compute slices and share; 0, 0 and a whole GPU where unknown."""
    if geometry is None:
        return 0, 0, 1.0
    if not profile:
        return usable_bytes(f"7g.{geometry.memory_gb}gb"), geometry.compute_slices, 1.0
    kind = geometry.profiles.get(profile)
    return (kind.memory_bytes, kind.compute_slices, geometry.share(profile)) if kind else (0, 0, 1.0)


def _mig_node(node: NodeGpus, leaving: str) -> MigNode | None:
    geometry, slices = geometry_of(node.product, node.memory_mib), cut_of(node)
    if geometry is None or not node.count or not set(slices) <= set(geometry.profiles):
        return None
    taken: dict[str, int] = {}
    for pod in node.pods:
        if pod.resource.startswith(SLICE) and _stays(pod, leaving):
            taken[_profile(node, pod.resource)] = taken.get(_profile(node, pod.resource), 0) + pod.count
    has_both = bool(slices) and bool(node.resources.get(WHOLE))
    shares = "has pods share GPUs or slices, by the device plugin's configuration" if node.sharers else ""
    closed = node.closed or shares or ("has whole GPUs beside those that are cut" if has_both else "")
    tenants = tuple(Tenant(pod.name, _again(pod), _revision(pod)) for pod in node.pods if _stays(pod, leaving))
    return MigNode(node.node, geometry.product, node.count, slices, taken, tenants, closed)


def _promising(node: MigNode, resource: str) -> MigNode:
    profile = resource.removeprefix(SLICE)
    free = node.slices.get(profile, 0) - node.taken.get(profile, 0)
    if free <= 0 or node.closed:
        return node
    coming = (Tenant("", demand_for(resource, "", 1)),) * free
    return replace(node, taken={**node.taken, profile: node.slices[profile]}, tenants=(*node.tenants, *coming))


def _stays(pod: GpuPod, leaving: str) -> bool:
    return not leaving or pod.service != leaving


def _revision(pod: GpuPod) -> str:
    namespace, _, _ = pod.service.partition("/")
    return f"{namespace}/{pod.revision}" if pod.revision else ""


def _again(pod: GpuPod) -> Demand | None:
    """Return what a pod needs elsewhere after an eviction: the same as now."""
    return demand_for(pod.resource, pod.name, pod.count) if pod.service else None
