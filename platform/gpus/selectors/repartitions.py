"""Queries of repartitions of a cluster's nodes."""

from django.db.models import QuerySet

from clusters.models import Cluster
from common.errors import NotFound
from gpus.models import Repartition
from placement.repartition.machine import Phase


def repartition_query(*, cluster: Cluster) -> QuerySet[Repartition]:
    """Return the cluster's repartitions."""
    return Repartition.objects.select_related("cluster").filter(cluster=cluster)


def repartition_get(*, cluster: str, repartition_id: int) -> Repartition:
    """Return a repartition of a cluster, by the cluster's name; raises NotFound."""
    found = Repartition.objects.select_related("cluster").filter(cluster__name=cluster, pk=repartition_id).first()
    if found is None:
        raise NotFound(f"cluster {cluster} has no repartition {repartition_id}")
    return found


def repartitions_open(*, cluster: Cluster) -> list[Repartition]:
    """Return proposed and running ones, by node."""
    return list(repartition_query(cluster=cluster).filter(settled_at=None).order_by("node"))


def repartitions_proposed(*, limit: int) -> list[Repartition]:
    """Return those of all clusters that wait for a decision, oldest first."""
    rows = Repartition.objects.select_related("cluster").filter(phase=Phase.PROPOSED.value)
    return list(rows.order_by("proposed_at", "pk")[:limit])


def repartitions_settled(*, cluster: Cluster, limit: int) -> list[Repartition]:
    """Return finished ones, newest first."""
    return list(repartition_query(cluster=cluster).exclude(settled_at=None).order_by("-settled_at")[:limit])
