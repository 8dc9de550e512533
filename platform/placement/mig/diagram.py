"""MIG diagram: a node's GPUs as boxes, each slice in its place with its pod, and memory outside slices. Pure.

Which slice of a kind a pod uses only its node knows: pods are drawn on the first of their kind, in the cluster's order.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from integrations.clusters.base import SLICE, WHOLE, GpuPod
from placement.inventory import Gpu, GpuNode, Slice

_NO_POD = GpuPod("", "", "", 0)


class BoxState(StrEnum):
    """In use by a pod, free, or unusable in the present layout."""

    TAKEN = "taken"
    FREE = "free"
    UNUSED = "unused"


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a GPU.

    Attributes:
        name: the slice's profile, or `whole GPU`; empty outside slices.
        start, size: in memory slices of the GPU.
        pod, service: NAMESPACE/NAME of the pod and service drawn on it; empty without a pod, or for a pod of no
            service.
        change: `gone` or `new` beside another layout of the same GPU; empty for slices that stay.
    """

    name: str
    start: int
    size: int
    state: BoxState
    pod: str = ""
    service: str = ""
    change: str = ""


@dataclass(frozen=True, slots=True)
class DrawnGpu:
    """One GPU from its first memory slice to its last, without a gap."""

    index: int
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Cuts:
    """One GPU in its present and its planned layout."""

    before: DrawnGpu
    after: DrawnGpu


@dataclass(frozen=True, slots=True)
class FreeRoom:
    """Free units of one resource on the nodes with a product; nodes that accept no pods count for none."""

    product: str
    resource: str
    free: int
    total: int
    nodes: tuple[str, ...]


def drawn(node: GpuNode) -> tuple[DrawnGpu, ...]:
    """Return a node's GPUs with their pods."""
    pods: dict[str, list[GpuPod]] = defaultdict(list)
    for pod in node.pods:
        pods[pod.resource.removesuffix(".shared")] += [pod] * pod.count
    return tuple(DrawnGpu(gpu.index, tuple(_boxes(gpu, node.memory_slices, pods))) for gpu in node.gpus)


def beside(before: Iterable[Gpu], after: Iterable[Gpu], memory_slices: int) -> tuple[Cuts, ...]:
    """Return each GPU whose layout changes, with slices that go and slices that come."""
    found = []
    for one, other in zip(before, after, strict=True):
        had, has = tuple(_boxes(one, memory_slices, {})), tuple(_boxes(other, memory_slices, {}))
        if had != has:
            gone, new = _marked(had, has, "gone"), _marked(has, had, "new")
            found.append(Cuts(DrawnGpu(one.index, gone), DrawnGpu(other.index, new)))
    return tuple(found)


def free_rooms(nodes: Iterable[GpuNode]) -> tuple[FreeRoom, ...]:
    """Return free units by product and resource."""
    found: dict[tuple[str, str], list[tuple[GpuNode, int, int]]] = defaultdict(list)
    for node in nodes:
        for use in node.uses:
            free = 0 if node.is_closed else max(0, use.total - use.taken)
            found[node.product, use.resource].append((node, free, use.total))
    return tuple(
        FreeRoom(
            product,
            resource,
            sum(free for _, free, _ in there),
            sum(total for *_, total in there),
            tuple(node.name for node, free, _ in there if free),
        )
        for (product, resource), there in sorted(found.items())
    )


def _marked(boxes: Iterable[Box], others: Iterable[Box], change: str) -> tuple[Box, ...]:
    stays = {(each.name, each.start) for each in others}
    return tuple(
        replace(each, change=change) if each.name and (each.name, each.start) not in stays else each for each in boxes
    )


def _boxes(gpu: Gpu, memory_slices: int, pods: dict[str, list[GpuPod]]) -> Iterator[Box]:
    at = 0
    for each in sorted(gpu.slices, key=lambda each: each.start):
        if each.start > at:
            yield Box("", at, each.start - at, BoxState.UNUSED)
        state = BoxState.TAKEN if each.taken else BoxState.FREE
        pod = _next(each, pods) if each.taken else _NO_POD
        yield Box(each.profile, each.start, each.size, state, pod.name, pod.service)
        at = each.start + each.size
    if at < memory_slices:
        yield Box("", at, memory_slices - at, BoxState.UNUSED)


def _next(each: Slice, pods: dict[str, list[GpuPod]]) -> GpuPod:
    """Return the next pod that has such a slice; under the strategy `single`, pods request slices as whole GPUs."""
    waiting = pods.get(f"{SLICE}{each.profile}") or pods.get(WHOLE) or []
    return waiting.pop(0) if waiting else _NO_POD
