"""GPU inventory of a cluster, queried now."""

from dataclasses import dataclass
from datetime import datetime

from clusters.models import Cluster
from clusters.services.connection import driver_of
from deployments.services.revisions.gpu_assignment import gpus_note
from integrations.clusters.base import Nodes
from placement.inventory import GpuNode, gpu_node


@dataclass(frozen=True, slots=True)
class ClusterGpus:
    """GPUs by node.

    Attributes:
        unknown: why the inventory is not known; empty where it is.
    """

    nodes: tuple[GpuNode, ...]
    unknown: str


def cluster_gpus(*, cluster: Cluster) -> ClusterGpus:
    """Return the GPUs of a cluster's nodes, their MIG layout, and the pods that use them.

    Called with no transaction open.

    Raises:
        Unavailable: the cluster does not answer.
        InvalidInput: its cluster file does not say how to reach it.
    """
    found = cluster_nodes(cluster=cluster)
    return ClusterGpus(tuple(map(gpu_node, found.gpus)), found.unknown)


def cluster_nodes(*, cluster: Cluster) -> Nodes:
    """Return the current nodes of the cluster; raises what `cluster_gpus` raises.

    Called with no transaction open.
    """
    return driver_of(cluster).inventory(with_nodes=True)


def gpus_ask(*, cluster: Cluster, now: datetime) -> None:
    """Query a cluster's GPUs and store them; raises what `cluster_gpus` raises.

    Called with no transaction open.
    """
    gpus_note(cluster_id=cluster.pk, nodes=cluster_nodes(cluster=cluster), now=now)
