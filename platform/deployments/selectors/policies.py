"""Rollout policy and cluster queries."""

from django.db.models import QuerySet

from clusters.models import Cluster
from common.errors import NotFound
from deployments.models import RolloutPolicy


def policy_query() -> QuerySet[RolloutPolicy]:
    """Return all policies."""
    return RolloutPolicy.objects.all()


def policy_get(*, name: str) -> RolloutPolicy:
    """Return one policy; raises NotFound."""
    policy = RolloutPolicy.objects.filter(name=name).first()
    if policy is None:
        raise NotFound(f"there is no policy {name!r}")
    return policy


def cluster_get(*, name: str) -> Cluster:
    """Return one cluster; raises NotFound."""
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise NotFound(f"there is no cluster {name[:80]!r}")
    return cluster


def cluster_query() -> QuerySet[Cluster]:
    """Return the clusters."""
    return Cluster.objects.all()
