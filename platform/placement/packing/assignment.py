"""GPU assignment: the GPU or MIG slice of a service's replicas, and whether there is room for them. Pure.

A resource requested by name has to be free. Where a service leaves it open (`auto`), the assignment is the resource
that suffices for the version's measurements and takes the least of a GPU. Without room, it returns a repartition that
would make some.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from integrations.clusters.base import Arrangement, NodeGpus
from placement.mig.geometry import GEOMETRIES
from placement.packing.measured_latency import LatencyTarget, Timing, takes_ms
from placement.packing.packing import pack
from placement.repartition.proposal import Repartition, repartition
from placement.slices.offers import Offer, demand_for, mig_nodes, offers
from placement.slices.required_slice import HEAD_ROOM_PERCENT, Misfit, Need, needed
from placement.slices.slice_types import Demand, Room

_GIB = 1 << 30
CUDA_BYTES = _GIB // 2
"""Assumed GPU memory of a CUDA process before any model, since models are measured on CPUs."""


@dataclass(frozen=True, slots=True)
class Model:
    """A version's measurements, and what its service requests.

    Attributes:
        memory_bytes: on a CPU.
        timings: on GPUs and slices.
        target: None where any latency will do.
        shares: it may share a GPU or slice with other pods, where the device plugin allows it.
    """

    memory_bytes: int
    timings: tuple[Timing, ...] = ()
    target: LatencyTarget | None = None
    shares: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """The resource that each replica requests; there is room for all.

    Attributes:
        products: labels `nvidia.com/gpu.product`, one of which the node must have; empty leaves it open.
        why: a part of a sentence.
    """

    accelerator: str
    products: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Too little room; `plan` would make some for `missing`."""

    why: str
    plan: Repartition | None = None
    missing: tuple[Demand, ...] = ()


def as_named(
    resource: str,
    replicas: int,
    seen: Sequence[NodeGpus],
    *,
    leaving: str = "",
    arrangement: Arrangement | None = None,
) -> Chosen | NoRoom:
    """Return whether replicas that request a resource by its name have room.

    Args:
        leaving: NAMESPACE/NAME of a service whose pods make room; empty for none.
        arrangement: None leaves it to the cluster.
    """
    there = offers(seen, leaving=leaving)
    fitting = [each for each in there if each.resource == resource]
    free = sum(each.free for each in fitting)
    if free >= replicas:
        where = _expected(replicas, fitting, arrangement)
        return Chosen(resource, (), f"{_count(replicas)} of {free} free {resource}{where}")
    kinds = ", ".join(sorted({each.resource for each in there})) or "no GPU at all"
    nodes = mig_nodes(seen, leaving=leaving, promised=resource)
    missing = demand_for(resource, "it", replicas - free)
    plan = repartition([missing], nodes)
    why = f"{free} of {resource} are free" if fitting else f"no node offers {resource}, but {kinds}"
    return NoRoom(f"room for {_count(replicas)} is needed, and {why}", plan, (missing,))


def automatic(
    model: Model,
    replicas: int,
    seen: Sequence[NodeGpus],
    *,
    leaving: str = "",
    arrangement: Arrangement | None = None,
) -> Chosen | NoRoom:
    """Return the resource that suffices and takes the least of a GPU, of those with room for all replicas.

    Where the model's latency was measured on some of those that hold it, only those of them that are fast enough
    qualify.

    Args:
        leaving, arrangement: as of `as_named`.
    """
    memory_bytes = model.memory_bytes + CUDA_BYTES
    offered = offers(seen, leaving=leaving)
    there = [each for each in offered if each.product and each.memory_bytes and (model.shares or each.sharers == 1)]
    if not there:
        return NoRoom("no node offers a GPU whose size is known" + _if_shared(model, replicas, seen, leaving))
    needs = {product: needed(memory_bytes, GEOMETRIES[product]) for product in sorted({each.product for each in there})}
    misfits = [each.why for each in needs.values() if isinstance(each, Misfit)]
    holding = [each for each in there if _does(each, needs[each.product])]
    in_time, latency = _in_time(model, holding)
    if holding and not in_time:
        return NoRoom(latency)
    doing = _apart(in_time, offered)
    reported = (
        f"{model.memory_bytes / _GIB:.3g} GiB measured on a CPU, {CUDA_BYTES / _GIB:.3g} GiB for CUDA and "
        f"{HEAD_ROOM_PERCENT} % more"
    )
    ranked = sorted({(each.share, each.resource, each.profile) for each in doing})
    for _, resource, profile in ranked:
        alike = [each for each in doing if (each.resource, each.profile) == (resource, profile)]
        if sum(each.free for each in alike) >= replicas:
            has = min(each.memory_bytes for each in alike) / _GIB
            where = _expected(replicas, alike, arrangement)
            why = (
                f"{reported}: {_what(alike)} has {has:.3g} GiB and is the least that does with {_count(replicas)} free"
            )
            why = f"{why}{where}; {_taking(model, alike) or latency}{_sharing(alike)}"
            return Chosen(resource, _products(resource, alike, offered), why)
    if not ranked and len(misfits) == len(needs):
        return NoRoom(misfits[0])
    demand = Demand("it", replicas, int(memory_bytes * (1 + HEAD_ROOM_PERCENT / 100)))
    plan = repartition([demand], mig_nodes(seen, leaving=leaving))
    why = f"room for {_count(replicas)} is needed, with {reported}, and nothing that does is free for all"
    return NoRoom(why + _if_shared(model, replicas, seen, leaving), plan, (demand,))


def _apart(doing: Sequence[Offer], offered: Sequence[Offer]) -> list[Offer]:
    """Return sufficient offers, except those with which a pod could land on a node where too many share a GPU.

    A pod is bound to a resource and to a product's label, and nodes with both may differ in how many share.
    """
    known = set(doing)
    others = {(each.resource, each.label) for each in offered if each.sharers != 1 and each not in known}
    return [each for each in doing if (each.resource, each.label) not in others]


def _what(alike: Sequence[Offer]) -> str:
    what = alike[0].profile or f"a whole {alike[0].product}"
    sharers = max(each.sharers for each in alike)
    return what if sharers == 1 else f"one of the {sharers} parts of {what}"


def _sharing(alike: Sequence[Offer]) -> str:
    """Return a sentence about sharing the chosen resource; empty where each pod has its own."""
    sharers = max(each.sharers for each in alike)
    if sharers == 1:
        return ""
    held = "MPS holds each to" if all(each.is_held for each in alike) else "nothing but its own size holds one to"
    return f"; up to {sharers} pods share each, as spec.placement.sharing allows, and {held} its part of the memory"


def _if_shared(model: Model, replicas: int, seen: Sequence[NodeGpus], leaving: str) -> str:
    """Return a resource that would suffice if the model were allowed to share; empty for none, or if it is allowed."""
    if model.shares or model.target is not None:
        return ""
    found = automatic(replace(model, shares=True), replicas, seen, leaving=leaving)
    if isinstance(found, NoRoom):
        return ""
    return f"; it would fit on {found.accelerator}, which pods share, and spec.placement.sharing does not allow it"


def _in_time(model: Model, holding: Sequence[Offer]) -> tuple[Sequence[Offer], str]:
    """Return the offers that are fast enough, and a text about the selection; all offers where no latency is known."""
    target = model.target
    if target is None:
        return holding, "latency was not considered, since spec.placement.latency states none"
    taken = [(each, ms) for each in holding if (ms := takes_ms(model.timings, each, target.batch_size)) is not None]
    if not taken:
        return holding, f"latency was not considered: {target} was measured on none of these GPUs and slices"
    in_time = [each for each, ms in taken if ms <= target.p99_ms]
    reported = sorted({(ms, each.profile or each.product) for each, ms in taken})
    measured = ", ".join(f"{ms:.3g} ms on {name}" for ms, name in reported)
    return in_time, f"an answer within {target} is required, and it took {measured}"


def _taking(model: Model, alike: Sequence[Offer]) -> str:
    """Return the model's measured latency on the chosen resource, as text; empty where it did not count."""
    target = model.target
    taken = [takes_ms(model.timings, each, target.batch_size) for each in alike] if target else []
    slowest = max((ms for ms in taken if ms is not None), default=None)
    return "" if slowest is None else f"it took {slowest:.3g} ms there of {target}"


def _does(offer: Offer, need: Need | Misfit) -> bool:
    return isinstance(need, Need) and offer.memory_bytes >= need.memory_bytes


def _products(resource: str, alike: Iterable[Offer], there: Iterable[Offer]) -> tuple[str, ...]:
    """Return the labels to which pods are bound; empty where every node that offers the resource will do."""
    does = {each.label for each in alike}
    others = {each.label for each in there if each.resource == resource} - does
    return tuple(sorted(does)) if others else ()


def _expected(replicas: int, alike: Iterable[Offer], arrangement: Arrangement | None) -> str:
    """Return the expected nodes of the replicas, as the end of a sentence; empty where the arrangement is unknown."""
    if arrangement is None:
        return ""
    rooms = [Room(each.node, each.product, each.profile, 1, 0, each.share, each.free) for each in alike]
    found = pack([Demand("it", replicas, 0, compute_slices=0)], rooms, arrangement)
    nodes = Counter(each.node for each in found.placements)
    reported = ", ".join(f"{count} on {node}" for node, count in sorted(nodes.items()))
    alone = " (no other node has one free)" if len(nodes) == 1 < replicas and arrangement is Arrangement.SPREAD else ""
    return f"; {arrangement.value}, {reported}{alone}"


def _count(replicas: int) -> str:
    return "1 replica" if replicas == 1 else f"{replicas} replicas"
