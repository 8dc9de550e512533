"""GPU inventory of a node: how each GPU is partitioned, and how many of its slices are in use. Pure.

The API server reports how many slices of each profile a node has, and how many of them are allocated to pods. Which GPU
has which, and which slice a pod uses, only the node knows: slices are laid out as in `layouts.py`, and of equal ones
the first are shown as taken.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from integrations.clusters.base import CUT_BY_CLAIMS, SLICE, WHOLE, GpuPod, NodeGpus
from placement.mig.geometry import GEOMETRIES, Geometry, geometry_of
from placement.mig.layouts import Layout, arranged, spread_over

_SHARED = ".shared"


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice, or a whole GPU, in its place.

    Attributes:
        start, size: in memory slices of the GPU.
    """

    profile: str
    start: int
    size: int
    compute_slices: int
    taken: bool


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU; memory outside its slices is unusable in the present layout."""

    index: int
    slices: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """Total and allocated numbers of an extended resource."""

    resource: str
    total: int
    taken: int


@dataclass(frozen=True, slots=True)
class GpuNode:
    """The GPUs of a node.

    Attributes:
        product: as known here, such as `H100-80GB`, else as its label says.
        memory_slices: of one GPU; 1 where its geometry is unknown.
        note: a remark; empty for none.
        is_closed: it accepts no pods.
    """

    name: str
    product: str
    strategy: str
    memory_slices: int
    gpus: tuple[Gpu, ...]
    uses: tuple[Use, ...]
    pods: tuple[GpuPod, ...]
    note: str
    is_closed: bool = False


def gpu_node(seen: NodeGpus) -> GpuNode:
    """Return a node's GPUs with their slices."""
    geometry, uses = geometry_of(seen.product, seen.memory_mib), seen.resources
    seen = _as_cut_now(seen)
    counts = cut_of(seen)
    # Of a shared resource, the device plugin allocates each unit once before any a second time.
    taken: Counter[str] = Counter()
    for profile, resource in _resources(seen):
        taken[profile] += seen.taken(resource)
    whole, whole_taken = (0, 0) if counts and not _is_mixed(seen) else _whole_gpus(seen)
    size = 1 if geometry is None else geometry.memory_slices
    drawn = [_whole(geometry, size, taken=index < whole_taken) for index in range(whole)]
    if geometry is not None and counts:
        drawn += _drawn(geometry, _layouts(seen, geometry, counts, whole), taken)
    return GpuNode(
        name=seen.node,
        product=geometry.product if geometry else seen.product or "unknown GPU",
        strategy=seen.strategy or "none",
        memory_slices=size,
        gpus=tuple(Gpu(index, slices) for index, slices in enumerate(drawn)),
        uses=tuple(Use(name, total, seen.taken(name)) for name, total in sorted(uses.items()) if total),
        pods=seen.pods,
        note=_note(seen, geometry, counts),
        is_closed=bool(seen.closed),
    )


def _as_cut_now(seen: NodeGpus) -> NodeGpus:
    """Return a node whose GPUs are cut as pods claim slices with the slices that pods have; the rest is whole."""
    if seen.strategy != CUT_BY_CLAIMS:
        return seen
    return replace(
        seen, resources={name: seen.taken(name) if name != WHOLE else all_ for name, all_ in seen.resources.items()}
    )


def cut_of(seen: NodeGpus) -> Mapping[str, int]:
    """Return the number of slices of each profile on a node; empty where its GPUs are whole."""
    counts: Counter[str] = Counter()
    for profile, resource in _resources(seen):
        counts[profile] += seen.devices(resource)
    return {profile: count for profile, count in counts.items() if count or not _is_mixed(seen)}


def cut_drawn(product: str, cut: Sequence[Layout]) -> tuple[Gpu, ...]:
    """Return GPUs with these layouts and no pods; a GPU without slices is whole."""
    geometry = GEOMETRIES[product]
    drawn = _drawn(geometry, tuple(cut), Counter())
    return tuple(
        Gpu(index, slices or _whole(geometry, geometry.memory_slices, taken=False))
        for index, slices in enumerate(drawn)
    )


def _is_mixed(seen: NodeGpus) -> bool:
    return not _profile(seen)


def _profile(seen: NodeGpus) -> str:
    """Return the profile of a node's slices with the strategy `single`; empty elsewhere."""
    return seen.product.removesuffix("-SHARED").partition("-MIG-")[2]


def _resources(seen: NodeGpus) -> list[tuple[str, str]]:
    """Return profiles with the resource name that pods request."""
    if not _is_mixed(seen):
        return [(_profile(seen), name) for name in (WHOLE, WHOLE + _SHARED)]
    named = ((name.removeprefix(SLICE), name) for name in seen.resources if name.startswith(SLICE))
    plain = ((profile.removesuffix(_SHARED) if name in seen.sharers else profile, name) for profile, name in named)
    return [(profile, name) for profile, name in plain if "." not in profile.partition("gb")[2]]  # not `1g.10gb.me`


def _layouts(seen: NodeGpus, geometry: Geometry, counts: Mapping[str, int], whole: int) -> tuple[Layout, ...]:
    """Return the layout of each partitioned GPU; the node's labels give their number, else its slices do."""
    if not set(counts) <= set(geometry.profiles):
        return ()
    kinds = [(geometry.profiles[profile], count) for profile, count in counts.items()]
    least = max(
        math.ceil(sum(kind.compute_slices * count for kind, count in kinds) / geometry.compute_slices),
        math.ceil(sum(kind.memory_slices * count for kind, count in kinds) / geometry.memory_slices),
        1,
    )
    return spread_over(geometry, max(seen.count - whole if _is_mixed(seen) else 0, least), counts)


def _drawn(geometry: Geometry, cut: tuple[Layout, ...], taken: Counter[str]) -> list[tuple[Slice, ...]]:
    left = Counter(taken)
    drawn = []
    for layout in cut:
        slices = []
        for placed in arranged(geometry, dict(layout)) or ():
            kind = geometry.profiles[placed.profile]
            is_taken = left[placed.profile] > 0
            left[placed.profile] -= is_taken
            slices.append(Slice(placed.profile, placed.start, kind.memory_slices, kind.compute_slices, is_taken))
        drawn.append(tuple(slices))
    return drawn


def _whole(geometry: Geometry | None, size: int, *, taken: bool) -> tuple[Slice, ...]:
    return (Slice("whole GPU", 0, size, geometry.compute_slices if geometry else 1, taken),)


def _whole_gpus(seen: NodeGpus) -> tuple[int, int]:
    """Return how many whole GPUs there are, and how many of them are allocated."""
    names = [name for name in (WHOLE, WHOLE + _SHARED) if name == WHOLE or name in seen.sharers]
    return sum(map(seen.devices, names)), sum(map(seen.taken, names))


def _note(seen: NodeGpus, geometry: Geometry | None, counts: Mapping[str, int]) -> str:
    if seen.closed:
        return f"No pod may come: it {seen.closed}."
    if seen.config_state and seen.config_state != "success":
        return f"MIG manager is to apply {seen.config} and reports {seen.config_state}."
    if not seen.product:
        return "It has no label nvidia.com/gpu.product; GPU Feature Discovery sets it."
    if geometry is None:
        return "It cannot be cut by MIG, or how is not known here."
    unknown = sorted(set(counts) - set(geometry.profiles))
    if unknown:
        return f"Slices {', '.join(unknown)} of {geometry.product} are not known here."
    return _remark(seen)


def _remark(seen: NodeGpus) -> str:
    if seen.strategy == CUT_BY_CLAIMS:
        return "Its GPUs are cut as pods claim slices; the free ones of each kind are alternatives."
    shared = ", ".join(f"{name} (by {count})" for name, count in sorted(seen.sharers.items()))
    return f"Pods share each {shared}; one of them is drawn on it." if shared else ""
