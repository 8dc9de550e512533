"""Sweep claims: limit one cluster's share of the workers' threads, by one sweep at a time and no hints while busy."""

from datetime import datetime, timedelta

from django.db.models import Q

from clusters.models import Cluster
from deployments.models import InferenceService

CLAIM = timedelta(minutes=1)
"""Longer than a sweep with a cluster that answers; an unreachable one is detected earlier."""


def begin(cluster_id: int, *, now: datetime) -> datetime | None:
    """Return a claim on the cluster's sweep; None where another worker has it."""
    free = Cluster.objects.filter(Q(swept_until=None) | Q(swept_until__lte=now), pk=cluster_id)
    return now + CLAIM if free.update(swept_until=now + CLAIM) else None


def end(cluster_id: int, claim: datetime) -> None:
    """Release the claim, unless it expired and another has it."""
    Cluster.objects.filter(pk=cluster_id, swept_until=claim).update(swept_until=None)


def is_busy(cluster_id: int, *, now: datetime) -> bool:
    """Return whether some worker ticks one of the cluster's services right now."""
    return InferenceService.objects.filter(cluster=cluster_id, lease_expires_at__gt=now).exists()
