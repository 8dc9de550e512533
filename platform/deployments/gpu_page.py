"""The page of a cluster's GPUs as a value, as `deployments.pages` has those of services.

It shows what the cluster was seen to have last. Opening the page has it looked at; while somebody watches, the sweep
looks where services have GPUs.
"""

import zlib
from dataclasses import dataclass

from deployments.pages import Page
from deployments.placement.drawing import DrawnGpu, drawn, free_rooms
from deployments.placement.inventory import GpuNode, gpu_node
from deployments.selectors import cluster_get, gpu_marks
from deployments.services import gpus_of


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node and its GPUs as they are drawn."""

    node: GpuNode
    gpus: tuple[DrawnGpu, ...]


def gpu_page(name: str, problem: str = "") -> Page:
    """Return the page of a cluster's GPUs; raises NotFound.

    Args:
        problem: why the cluster could not be asked just now; empty where it answered, or was not asked.
    """
    cluster = cluster_get(name=name)
    marks = gpu_marks()[cluster.pk]  # first: what changes between the reads is sent again, not lost
    seen = gpus_of(cluster)
    nodes = tuple(map(gpu_node, seen.nodes))
    return Page(
        template="deployments/cluster_gpus.html",
        fragments=("deployments/_gpus_seen.html", "deployments/_gpus_nodes.html"),
        cursor=gpu_cursor(marks),
        context={
            "cluster": cluster,
            "problem": problem,
            "unknown": seen.unknown if cluster.gpus else "",
            "rooms": free_rooms(nodes),
            "nodes": tuple(NodeView(node, drawn(node)) for node in nodes),
        },
    )


def gpu_cursor(marks: tuple[int, int]) -> int:
    """Return a number for what is known of a cluster's GPUs."""
    return zlib.crc32(repr(marks).encode())
