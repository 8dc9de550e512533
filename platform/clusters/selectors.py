"""Cluster queries."""

from django.db.models import QuerySet

from clusters.domain.pricing import Prices
from clusters.models import Cluster
from common.errors import NotFound


def cluster_get(*, name: str) -> Cluster:
    """Return one cluster; raises NotFound."""
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise NotFound(f"there is no cluster {name[:80]!r}")
    return cluster


def cluster_query() -> QuerySet[Cluster]:
    """Return the clusters."""
    return Cluster.objects.all()


def prices_of(cluster: Cluster) -> Prices:
    """Return the prices per hour of a cluster."""
    return Prices(cluster.prices.get("currency", ""), cluster.prices.get("per_hour", {}))
