"""Capacity check: whether a cluster's nodes have room for a rollout at its peak. Pure.

The peak is when the new revision has all the replicas that the traffic needs, and stable still has its own. Running
pods count on their nodes; the rest are placed one by one, the largest first, each on the first node with room
(first-fit decreasing). The scheduler may do better or worse by its scores and by affinities, but what does not fit here
by far does not fit there.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from integrations.clusters.base import Node, Nodes, Resources

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Wanted:
    """A number of further pods of one kind."""

    what: str
    count: int
    resources: Resources


@dataclass(frozen=True, slots=True)
class Room:
    """Whether a rollout fits.

    Attributes:
        fits: None where unknown.
        pods: how many further pods it needs at its peak; `placed` of them have room.
        message: all of it in one sentence.
    """

    fits: bool | None
    pods: int
    placed: int
    message: str


def room_for(wanted: Sequence[Wanted], nodes: Nodes) -> Room:
    """Return whether all wanted pods have room on the nodes."""
    pods = sum(each.count for each in wanted)
    asked = " and ".join(f"{each.count} of {each.what}" for each in wanted if each.count)
    if nodes.unknown:
        return Room(None, pods, 0, f"whether it fits is not known: {nodes.unknown}")
    if not pods:
        return Room(True, 0, 0, "it needs no further pod")
    sized = [(each.what, _pod(each.resources, nodes)) for each in wanted for _ in range(each.count)]
    left = _left_over(sorted(sized, key=lambda one: (one[1].cpu_cores, one[1].memory_bytes), reverse=True), nodes.nodes)
    if not left:
        return Room(True, pods, pods, f"it fits: {_pods(pods)} more at its most demanding moment ({asked})")
    missing = "; ".join(f"no node has room for {count} of {what}" for what, count in sorted(Counter(left).items()))
    why = f"it does not fit: it needs {_pods(pods)} more at its most demanding moment ({asked}), and {missing}"
    return Room(False, pods, pods - len(left), f"{why}{_shown(nodes)}")


def room_shared(steps: Sequence[tuple[str, int, int]], full: int, one: Wanted, before: Resources, nodes: Nodes) -> Room:
    """Return whether a rollout whose replicas replace stable's fits, with the split at each step.

    Args:
        steps: the canary's share at each in words, and how many replicas stable and the canary have there.
        full: how many replicas stable has.
        one: a single replica of the canary; `before` is what one of stable's requests.
    """
    shown = "; ".join(f"{what}: {canary} of the canary and {stable} of stable" for what, stable, canary in steps)
    plan = f"without surge the canary takes its replicas out of stable's {full}: {shown}"
    if full == 1:
        room = room_for([one], nodes)
        return replace(room, message=f"a single replica cannot be shared, so there are two meanwhile: {room.message}")
    new, old = _full(one.resources, nodes.defaults), _full(before, nodes.defaults)
    if new.cpu_cores <= old.cpu_cores and new.memory_bytes <= old.memory_bytes:
        return Room(True, 0, 0, f"it fits: {plan}")
    return Room(
        None, 0, 0, f"{plan}; a replica of it requests more than one of stable's, so its place may be too small"
    )


@dataclass(frozen=True, slots=True)
class _Size:
    cpu_cores: float
    memory_bytes: int


def _full(resources: Resources, defaults: Resources) -> _Size:
    cpu_cores = resources.cpu_cores or defaults.cpu_cores or 0.0
    return _Size(cpu_cores, resources.memory_bytes or defaults.memory_bytes or 0)


def _pod(resources: Resources, nodes: Nodes) -> _Size:
    replica, beside = _full(resources, nodes.defaults), _full(nodes.beside, Resources())
    return _Size(replica.cpu_cores + beside.cpu_cores, replica.memory_bytes + beside.memory_bytes)


def _left_over(sized: Sequence[tuple[str, _Size]], nodes: Sequence[Node]) -> list[str]:
    """Return the pods without a node."""
    free = [[node.cpu_cores, node.memory_bytes, node.pods] for node in nodes if not node.closed]
    left = []
    for what, size in sized:
        for node in free:
            if size.cpu_cores <= node[0] + 1e-9 and size.memory_bytes <= node[1] and node[2] > 0:
                node[0] -= size.cpu_cores
                node[1] -= size.memory_bytes
                node[2] -= 1
                break
        else:
            left.append(what)
    return left


def _shown(nodes: Nodes) -> str:
    """Return the free capacity, in brackets."""
    parts = [
        f"{node.name} {node.closed}"
        if node.closed
        else f"{node.name} has {node.cpu_cores:.3g} CPU, {node.memory_bytes / _GIB:.3g} GiB, {node.pods} pods left"
        for node in nodes.nodes[:5]
    ]
    more = len(nodes.nodes) - 5
    if more > 0:
        parts.append(f"{more} nodes more")
    if nodes.waiting:
        parts.append(f"{_pods(nodes.waiting)} wait for a node already")
    return f" ({', '.join(parts) or 'there is no node'})"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
