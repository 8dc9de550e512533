"""GPU page of a cluster as a value, as `deployments.web.pages` has those of services.

It shows the last observed inventory. Opening the page refreshes it; while the page is open, the sweep observes clusters
whose services have GPUs.
"""

import zlib
from dataclasses import dataclass

from clusters.selectors import cluster_get
from deployments.services import gpus_of
from events.web.live_updates import Page
from gpus.models import Repartition
from gpus.reconcile.repartition_change import plan_of
from gpus.selectors.gpus import gpu_marks
from gpus.selectors.repartitions import repartitions_open, repartitions_settled
from placement.inventory import GpuNode, cut_drawn, gpu_node
from placement.mig.diagram import Cuts, DrawnGpu, beside, drawn, free_rooms
from placement.mig.geometry import GEOMETRIES
from placement.repartition.machine import Phase

SETTLED_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Step:
    """A command that a user may give on a repartition now, and its confirmation text."""

    verb: str
    label: str
    style: str
    question: str
    consequence: str
    asks_why: bool = False


@dataclass(frozen=True, slots=True)
class RepartitionView:
    """A drawn repartition: the GPUs whose layout changes.

    Attributes:
        unchanged: how many GPUs of the node stay as they are.
    """

    row: Repartition
    cuts: tuple[Cuts, ...]
    memory_slices: int
    unchanged: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class NodeView:
    """A drawn node with its GPUs."""

    node: GpuNode
    gpus: tuple[DrawnGpu, ...]


def gpu_page(name: str, problem: str = "") -> Page:
    """Return the page of a cluster's GPUs; raises NotFound.

    Args:
        problem: why the query of the cluster failed; empty where it succeeded or was not made.
    """
    cluster = cluster_get(name=name)
    marks = gpu_marks([cluster.pk]).of[cluster.pk]  # first: a change between the reads is sent again, not lost
    seen = gpus_of(cluster)
    nodes = tuple(map(gpu_node, seen.nodes))
    return Page(
        template="deployments/cluster_gpus.html",
        fragments=(
            "deployments/_gpus_repartitions.html",
            "deployments/_gpus_seen.html",
            "deployments/_gpus_nodes.html",
        ),
        cursor=gpu_cursor(marks),
        context={
            "cluster": cluster,
            "problem": problem,
            "unknown": seen.unknown if cluster.gpus else "",
            "rooms": free_rooms(nodes),
            "repartitions": tuple(map(repartition_view, repartitions_open(cluster=cluster))),
            "settled": repartitions_settled(cluster=cluster, limit=SETTLED_SHOWN),
            "profiles": _profiles(nodes),
            "nodes": tuple(NodeView(node, drawn(node)) for node in nodes),
        },
    )


def gpu_cursor(marks: tuple[int, int]) -> int:
    """Return a change marker of a cluster's inventory."""
    return zlib.crc32(repr(marks).encode())


def repartition_view(row: Repartition) -> RepartitionView:
    """Return a drawn repartition with the commands it allows."""
    plan, geometry = plan_of(row), GEOMETRIES[row.product]
    before, after = (cut_drawn(row.product, cut) for cut in (plan.before, plan.after))
    cuts = beside(before, after, geometry.memory_slices)
    return RepartitionView(row, cuts, geometry.memory_slices, len(before) - len(cuts), _steps(row))


def _steps(row: Repartition) -> tuple[Step, ...]:
    match Phase(row.phase):
        case Phase.PROPOSED:
            pods = len(row.leaving)
            leaves = (
                f"{pods} GPU pod{'' if pods == 1 else 's'} of services leave it" if pods else "nothing has to leave it"
            )
            return (
                Step(
                    "approve",
                    "Approve",
                    "primary",
                    f"Repartition the GPUs of {row.node}?",
                    f"The node takes no pods, {leaves}, and MIG manager cuts it; then it takes pods again.",
                ),
                Step(
                    "decline",
                    "Decline",
                    "",
                    f"Leave {row.node} as it is?",
                    "The proposal is closed; its author sees the reason.",
                    asks_why=True,
                ),
            )
        case Phase.DRAINING | Phase.CUTTING:
            return (
                Step(
                    "abort",
                    "Abort",
                    "danger",
                    f"Stop cutting {row.node}?",
                    "The node is brought back to what it was, and takes pods again.",
                ),
            )
        case _:
            return ()


def _profiles(nodes: tuple[GpuNode, ...]) -> tuple[str, ...]:
    """Return the slices that some node could be cut into, the smallest of each product first."""
    products = {node.product for node in nodes if node.strategy == "mixed" and node.product in GEOMETRIES}
    return tuple(dict.fromkeys(name for product in sorted(products) for name in GEOMETRIES[product].profiles))
