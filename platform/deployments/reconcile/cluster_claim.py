"""Claim of a cluster behind a network: one sweep or one controller at a time turns to its services.

    free --take--> held, and renewed --release--> free
                    '-- its process ended, and it ran out --take--> held by another

It is the time until when the cluster is held, in the cluster's row, and taken by one conditional UPDATE.
"""

import threading
from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from clusters.models import Cluster
from clusters.services.connection import LOCAL
from deployments.reconcile.renewal import HELD


class ClusterClaim:
    """A claim that was taken. For several threads at once."""

    def __init__(self, cluster_id: int, until: datetime) -> None:
        self._cluster_id = cluster_id
        self._until: datetime | None = until
        self._lock = threading.Lock()

    def renew(self, now: datetime) -> bool:
        """Renew it; returns False where it ran out and another one has the cluster, or was released."""
        with self._lock:
            if self._until is None:
                return False
            mine = Cluster.objects.filter(pk=self._cluster_id, swept_until=self._until)
            if not mine.update(swept_until=now + HELD):
                return False
            self._until = now + HELD
            return True

    def release(self) -> None:
        """Release it, unless it ran out and another one has the cluster."""
        with self._lock:
            if self._until is not None:
                Cluster.objects.filter(pk=self._cluster_id, swept_until=self._until).update(swept_until=None)
                self._until = None


def renew_all(claims: Mapping[int, ClusterClaim], *, now: datetime) -> list[int]:
    """Renew claims by cluster, with one statement where all were renewed together; returns the clusters that are lost.

    The caller alone renews and releases them.
    """
    untils = {claim._until for claim in claims.values()}
    if len(untils) == 1 and None not in untils:
        with transaction.atomic():
            mine = Cluster.objects.filter(pk__in=claims, swept_until=untils.pop())
            if mine.update(swept_until=now + HELD) == len(claims):
                for claim in claims.values():
                    claim._until = now + HELD
                return []
            transaction.set_rollback(True)
    return [cluster_id for cluster_id, claim in claims.items() if not claim.renew(now)]


def take(cluster_id: int, *, now: datetime) -> ClusterClaim | None:
    """Return a claim on a cluster; None where another one has it."""
    free = _free(now).filter(pk=cluster_id)
    return ClusterClaim(cluster_id, now + HELD) if free.update(swept_until=now + HELD) else None


def clusters_free(*, now: datetime) -> list[int]:
    """Return the ids of clusters behind a network that no sweep and no controller has now."""
    return list(_free(now).exclude(kind=LOCAL).values_list("pk", flat=True))


def _free(now: datetime) -> QuerySet[Cluster]:
    return Cluster.objects.filter(Q(swept_until=None) | Q(swept_until__lte=now))
