"""Which GPUs to cut anew when nothing fits, into what, and what has to leave them first. Pure.

A plan is for GPUs of one node, and only good where everything that has to leave finds a slice again, on the new cut or
elsewhere. Which GPU of a node a pod is on the API server does not say, so that all GPU pods have to leave the node; MIG
manager neither cordons nor drains. A node with pods that are none of a service's is left alone. Of a revision whose
pods find no slice before the cut, the disruption budget lets go of one alone: such a plan says so, and gives way to
others.
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
        before: what each GPU of the node is cut into, by its index; `after`: what it is to be cut into.
        leaving: pods that have to leave first.
        served: replicas that find a slice by it and found none before.
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
        """Return the indices of the GPUs that are cut anew."""
        return _changed(self.before, self.after)


def repartition(missing: Sequence[Demand], nodes: Sequence[MigNode]) -> Repartition | None:
    """Return the cut that serves the most of what is missing, with the fewest pods moved; None where none helps.

    A drain that no disruption budget will hold counts before the number of pods. Of cuts that are alike in that the one
    counts that changes the fewest GPUs and keeps the most slices as they are.
    """
    best: tuple[int, int, int, int, float] | None = None
    plan: Repartition | None = None
    asked = sum(each.replicas for each in missing)
    for node in _candidates(nodes):
        if best is not None and best[:2] == (-asked, 0) and best[2] < len(node.tenants):
            break  # all is served, and the others would have more pods moved
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
    """Return why a plan is no longer right for the nodes as they are now; empty where it is."""
    node = next((each for each in nodes if each.name == plan.node), None)
    if node is None:
        return f"{plan.node} is gone, or how its GPUs can be cut is not known any more"
    if node.closed:
        return f"{node.name} {node.closed}"
    if (node.product, node.gpus, layout_of(node.slices)) != (plan.product, len(plan.before), _layout(plan.before)):
        return f"{node.name} has {told(node.slices)} now, and had {told(_counted(plan.before))}"
    if came := _came(node, plan.leaving):
        return came
    rooms = _rooms(node, plan.after)
    found = pack(missing, rooms)
    if len(found.placements) < plan.served or not _finds_home(node, nodes, _left(rooms, found)):
        return f"what would have to leave {node.name} finds no slice again, as the nodes are now"
    return ""


def _came(node: MigNode, known: Sequence[str]) -> str:
    """Return who is on a node that was not known to be; empty for nobody."""
    for tenant in node.tenants:
        if tenant.demand is None:
            return f"the GPU pod {tenant.pod}, which is none of a service's, is on {node.name}"
        if tenant.pod not in known:
            return f"the GPU pod {tenant.pod} came to {node.name} since"
    return ""


def _layout(cut: Sequence[Layout]) -> Layout:
    return layout_of(_counted(cut))


def _candidates(nodes: Sequence[MigNode]) -> Iterator[MigNode]:
    """Yield nodes that may be cut anew, the emptiest first; of those that are the same in all that matters one."""
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
    """Yield each way to cut the first so many GPUs of the node alike, and leave the others as they are."""
    for layout in full_layouts(node.product):
        for count in range(1, node.gpus + 1):
            after = (layout,) * count + before[count:]
            if after != before:
                yield after


def _rooms(node: MigNode, after: Sequence[Layout]) -> list[Room]:
    counts = _counted(after)
    return [room(node.geometry, node.name, profile, counts[profile]) for profile in sorted(counts)]


def _left(rooms: Sequence[Room], found: Packing) -> list[Room]:
    """Return the rooms without the slices that were taken, which several may share."""
    slices = {(each.node, each.profile, each.slice_index) for each in found.placements}
    used = Counter((node, profile) for node, profile, _ in slices)
    return [replace(each, free=each.free - used[each.node, each.profile]) for each in rooms]


def _finds_home(node: MigNode, nodes: Sequence[MigNode], own: Sequence[Room]) -> bool:
    """Tell whether all that leaves the node finds a slice, there or elsewhere."""
    if not node.tenants:
        return True
    back = Counter(_anonymous(tenant.demand) for tenant in node.tenants if tenant.demand is not None)
    demands = [replace(each, name=str(index), replicas=count) for index, (each, count) in enumerate(back.items())]
    return not pack(demands, [*own, *_elsewhere(node, nodes)]).missing


def _elsewhere(node: MigNode, nodes: Sequence[MigNode]) -> list[Room]:
    return [each for other in nodes if other.name != node.name and not other.closed for each in other.rooms()]


def _held(node: MigNode, nodes: Sequence[MigNode]) -> Mapping[str, int]:
    """Return how many pods of which revisions will not leave the node before the cut.

    While it is drained their successors have the other nodes alone. One pod of a revision may be missing, and those
    after it are not let go.
    """
    leaving = [(tenant, demand) for tenant in node.tenants if (demand := _budgeted(tenant)) is not None]
    demands = [replace(demand, name=str(number), replicas=1) for number, (_, demand) in enumerate(leaving)]
    homeless = pack(demands, _elsewhere(node, nodes)).missing if demands else {}
    counts = Counter(leaving[int(number)][0].revision for number in homeless)
    return {revision: count - 1 for revision, count in sorted(counts.items()) if count > 1}


def _budgeted(tenant: Tenant) -> Demand | None:
    return tenant.demand if tenant.pod and tenant.revision else None


def _warning(node: MigNode, held: Mapping[str, int]) -> str:
    """Return what will hold the drain, as the end of a sentence; empty for nothing."""
    if not held:
        return ""
    told = " and ".join(f"{count} pod{'s' if count > 1 else ''} of {name}" for name, count in held.items())
    limit = int(DRAIN_LIMIT.total_seconds() / 60)
    return (
        f"; but disruption budgets will hold {told} on {node.name}, for which no other node has a slice: delete them "
        f"while it drains, else it is given up after {limit} min"
    )


def _changed(before: Sequence[Layout], after: Sequence[Layout]) -> tuple[int, ...]:
    return tuple(index for index, layout in enumerate(after) if layout != before[index])


def _counted(cut: Sequence[Layout]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for layout in cut:
        counts.update(dict(layout))
    return counts


def _kept(geometry: Geometry, before: Sequence[Layout], after: Sequence[Layout]) -> float:
    """Return how much of the GPUs is cut as it was."""
    return round(sum(geometry.share(name) * count for name, count in (_counted(before) & _counted(after)).items()), 9)


def _plan(node: MigNode, before: tuple[Layout, ...], after: tuple[Layout, ...], served: int, asked: int) -> Repartition:
    changed = _changed(before, after)
    gpus = f"GPU{'s' if len(changed) > 1 else ''} {', '.join(map(str, changed))}"
    leaving = tuple(tenant.pod for tenant in node.tenants if tenant.pod)
    leave = f", once {len(leaving)} pods have left the node" if leaving else ""
    cut = f"{told(dict(after[changed[0]]))} instead of {told(dict(before[changed[0]]))}"
    why = f"with {gpus} of {node.name} cut into {cut}{leave}, {served} of {asked} replicas find a slice"
    return Repartition(node.name, node.product, before, after, leaving, served, why)


def told(counts: Mapping[str, int]) -> str:
    """Return slices in words."""
    return " and ".join(f"{count} x {profile}" for profile, count in sorted(counts.items())) or "none"
