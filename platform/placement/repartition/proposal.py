"""MIG repartition proposals: which GPUs to cut when nothing fits, into which slices, and which pods must leave. Pure.

A plan covers GPUs of one node, and is valid only where every pod that has to leave finds a slice, on the new layout or
elsewhere. The API server does not report which GPU of a node a pod uses, so all GPU pods have to leave the node; MIG
manager neither cordons nor drains. A node with pods of no service is left alone. Of a revision whose pods find no slice
before the cut, the disruption budget allows one eviction: such a plan warns of that, and ranks below others.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from placement.gpu_nodes import MigNode, Tenant, room
from placement.mig.geometry import Geometry
from placement.mig.layouts import Layout, full_layouts, layout_of
from placement.packing.packing import pack
from placement.repartition.machine import DRAIN_LIMIT
from placement.slices.slice_types import Demand, Packing, Room


@dataclass(frozen=True, slots=True)
class Repartition:
    """A proposal for a person to approve.

    Attributes:
        before: the layout of each GPU of the node, by its index; `after`: the proposed one.
        leaving: pods that have to leave first.
        served: replicas that find a slice only with it.
        why: one sentence.
    """

    node: str
    product: str
    before: tuple[Layout, ...]
    after: tuple[Layout, ...]
    leaving: tuple[str, ...]
    served: int
    why: str

    @property
    def gpus(self) -> tuple[int, ...]:
        """Return the indices of the GPUs that are cut."""
        return _changed(self.before, self.after)


def repartition(missing: Sequence[Demand], nodes: Sequence[MigNode]) -> Repartition | None:
    """Return the layouts that serve the most missing demands, with the fewest pods moved; None where none helps.

    A drain that no disruption budget blocks ranks before the number of pods. Among equals, layouts that change the
    fewest GPUs and keep the most slices win.
    """
    best: tuple[int, int, int, int, float] | None = None
    plan: Repartition | None = None
    asked = sum(each.replicas for each in missing)
    for node in _candidates(nodes):
        if best is not None and best[:2] == (-asked, 0) and best[2] < len(node.tenants):
            break  # all is served, and the other nodes would have more pods moved
        before, held = node.cut(), _held(node, nodes)
        for after in _cuts(node, before):
            rooms = _rooms(node, after)
            found = pack(missing, rooms)
            kept = _kept(node.geometry, before, after)
            moved = len(node.tenants)
            score = (-len(found.placements), len(held), moved, len(_changed(before, after)), -kept)
            if not found.placements or (best is not None and score >= best):
                continue
            if _finds_home(node, nodes, _left(rooms, found)):
                best = score
                plan = _plan(node, before, after, len(found.placements), asked)
                plan = replace(plan, why=plan.why + _warning(node, held))
    return plan


def objection(plan: Repartition, missing: Sequence[Demand], nodes: Sequence[MigNode]) -> str:
    """Return why a plan no longer suits the nodes; empty where it does."""
    node = next((each for each in nodes if each.name == plan.node), None)
    if node is None:
        return f"{plan.node} is gone, or how its GPUs can be cut is not known any more"
    if node.closed:
        return f"{node.name} {node.closed}"
    if (node.product, node.gpus, layout_of(node.slices)) != (plan.product, len(plan.before), _layout(plan.before)):
        return f"{node.name} has {slices_text(node.slices)} now, and had {slices_text(_counted(plan.before))}"
    if came := _came(node, plan.leaving):
        return came
    rooms = _rooms(node, plan.after)
    found = pack(missing, rooms)
    if len(found.placements) < plan.served or not _finds_home(node, nodes, _left(rooms, found)):
        return f"what would have to leave {node.name} finds no slice again, as the nodes are now"
    return ""


def _came(node: MigNode, known: Sequence[str]) -> str:
    """Return a pod on a node that was not known before; empty for none."""
    for tenant in node.tenants:
        if tenant.demand is None:
            return f"the GPU pod {tenant.pod}, which is none of a service's, is on {node.name}"
        if tenant.pod not in known:
            return f"the GPU pod {tenant.pod} came to {node.name} since"
    return ""


def _layout(cut: Sequence[Layout]) -> Layout:
    return layout_of(_counted(cut))


def _candidates(nodes: Sequence[MigNode]) -> Iterator[MigNode]:
    """Yield nodes that may be cut, the emptiest first; of equivalent nodes only one."""
    seen: set[object] = set()
    for node in sorted(nodes, key=lambda each: (len(each.tenants), each.name)):
        asked = Counter(_anonymous(tenant.demand) for tenant in node.tenants if tenant.demand is not None)
        alike = (node.product, node.gpus, layout_of(node.slices), frozenset(asked.items()))
        if not node.closed and asked.total() == len(node.tenants) and alike not in seen:
            seen.add(alike)
            yield node


def _anonymous(demand: Demand) -> Demand:
    return replace(demand, name="", replicas=1)


def _cuts(node: MigNode, before: tuple[Layout, ...]) -> Iterator[tuple[Layout, ...]]:
    """Yield each way to cut the node's first GPUs alike, and leave the others as they are."""
    for layout in full_layouts(node.product):
        for count in range(1, node.gpus + 1):
            after = (layout,) * count + before[count:]
            if after != before:
                yield after


def _rooms(node: MigNode, after: Sequence[Layout]) -> list[Room]:
    counts = _counted(after)
    return [room(node.geometry, node.name, profile, counts[profile]) for profile in sorted(counts)]


def _left(rooms: Sequence[Room], found: Packing) -> list[Room]:
    """Return the rooms without the taken slices, which several replicas may share."""
    slices = {(each.node, each.profile, each.slice_index) for each in found.placements}
    used = Counter((node, profile) for node, profile, _ in slices)
    return [replace(each, free=each.free - used[each.node, each.profile]) for each in rooms]


def _finds_home(node: MigNode, nodes: Sequence[MigNode], own: Sequence[Room]) -> bool:
    """Return whether every pod that leaves the node finds a slice, there or elsewhere."""
    if not node.tenants:
        return True
    back = Counter(_anonymous(tenant.demand) for tenant in node.tenants if tenant.demand is not None)
    demands = [replace(each, name=str(index), replicas=count) for index, (each, count) in enumerate(back.items())]
    return not pack(demands, [*own, *_elsewhere(node, nodes)]).missing


def _elsewhere(node: MigNode, nodes: Sequence[MigNode]) -> list[Room]:
    return [each for other in nodes if other.name != node.name and not other.closed for each in other.rooms()]


def _held(node: MigNode, nodes: Sequence[MigNode]) -> Mapping[str, int]:
    """Return how many pods of each revision will not leave the node before the cut.

    During the drain, their successors have only the other nodes. One pod of a revision may be missing; evictions of
    further ones are refused.
    """
    leaving = [(tenant, demand) for tenant in node.tenants if (demand := _budgeted(tenant)) is not None]
    demands = [replace(demand, name=str(number), replicas=1) for number, (_, demand) in enumerate(leaving)]
    homeless = pack(demands, _elsewhere(node, nodes)).missing if demands else {}
    counts = Counter(leaving[int(number)][0].revision for number in homeless)
    return {revision: count - 1 for revision, count in sorted(counts.items()) if count > 1}


def _budgeted(tenant: Tenant) -> Demand | None:
    return tenant.demand if tenant.pod and tenant.revision else None


def _warning(node: MigNode, held: Mapping[str, int]) -> str:
    """Return what will block the drain, as the end of a sentence; empty for nothing."""
    if not held:
        return ""
    pods = " and ".join(f"{count} pod{'s' if count > 1 else ''} of {name}" for name, count in held.items())
    limit = int(DRAIN_LIMIT.total_seconds() / 60)
    return (
        f"; but disruption budgets will hold {pods} on {node.name}, for which no other node has a slice: delete "
        f"them while it drains, else it is given up after {limit} min"
    )


def _changed(before: Sequence[Layout], after: Sequence[Layout]) -> tuple[int, ...]:
    return tuple(index for index, layout in enumerate(after) if layout != before[index])


def _counted(cut: Sequence[Layout]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for layout in cut:
        counts.update(dict(layout))
    return counts


def _kept(geometry: Geometry, before: Sequence[Layout], after: Sequence[Layout]) -> float:
    """Return how much of the GPUs keeps its slices."""
    return round(sum(geometry.share(name) * count for name, count in (_counted(before) & _counted(after)).items()), 9)


def _plan(node: MigNode, before: tuple[Layout, ...], after: tuple[Layout, ...], served: int, asked: int) -> Repartition:
    changed = _changed(before, after)
    gpus = f"GPU{'s' if len(changed) > 1 else ''} {', '.join(map(str, changed))}"
    leaving = tuple(tenant.pod for tenant in node.tenants if tenant.pod)
    leave = f", once {len(leaving)} pods have left the node" if leaving else ""
    cut = f"{slices_text(dict(after[changed[0]]))} instead of {slices_text(dict(before[changed[0]]))}"
    why = f"with {gpus} of {node.name} cut into {cut}{leave}, {served} of {asked} replicas find a slice"
    return Repartition(node.name, node.product, before, after, leaving, served, why)


def slices_text(counts: Mapping[str, int]) -> str:
    """Return slices as text."""
    return " and ".join(f"{count} x {profile}" for profile, count in sorted(counts.items())) or "none"
