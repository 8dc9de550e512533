"""Reconcile schedule: selects services for a sweep, all active ones and a rate-limited share of settled ones.

    something goes on --a turn found nothing more--> settled --changed, or touched by its cluster--> something goes on

Settled ones are resynced, oldest first, to find changes without a report: every minute where the cluster reports
events, at every sweep where it does not. With many of them, the interval grows with their number, and a sweep's cost
does not.

One sweep at a time has a cluster (`cluster_claim`), and hints are dropped while a tick is in progress there, so that no
cluster has all threads of the workers.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import F, Q, QuerySet

from clusters.models import Cluster
from common.errors import Unavailable
from deployments.domain.service_state.quiescence import RESYNC_EVERY, TOUCHED
from deployments.models import InferenceService
from deployments.reconcile.hints import reconcile_soon
from integrations.clusters.base import ClusterDriver

RESYNC_PER_S = 20.0
"""Resync rate limit for the settled services of a cluster that reports events, per second."""
UNREPORTED_PER_S = 100.0
"""The same for clusters without reports."""
WATCH_FRESH = timedelta(seconds=20)
"""A watcher records the state of its watches every five seconds."""
HEARD_AGAIN = timedelta(seconds=5)
"""Overlap of event reads before the last observation, so that a killed sweep loses nothing."""
_MOST_MOVING = 1_000
_MOVING = ~Q(settled=F("changes"))


def services_due(cluster: Cluster, *, now: datetime, interval: timedelta, reports_events: bool) -> list[int]:
    """Return the ids of the services to reconcile now, the longest waiting first, settled ones in between.

    Args:
        interval: from one sweep to the next.
        reports_events: whether the cluster reports events of services.
    """
    # Beat's own jitter must not make a service miss every other sweep.
    before = now - interval / 2
    resync = max(interval, RESYNC_EVERY) if reports_events else interval
    late = InferenceService.objects.filter(cluster=cluster)
    moving = _ids(late.filter(_MOVING).filter(Q(ticked_at=None) | Q(ticked_at__lte=before)))
    rested = late.filter(settled=F("changes"), ticked_at__lte=before - resync + interval)
    settled = _ids(rested, most_settled(interval, reports_events=reports_events))
    return list(interleaved(moving, settled))


class SettledRow(NamedTuple):
    """A settled service that is due."""

    pk: int
    cluster_id: int
    namespace: str
    name: str
    changes: int


class Due(NamedTuple):
    """The services of some clusters that are due, the longest waiting first; `moving` are clusters and services."""

    moving: list[tuple[int, int]]
    settled: list[SettledRow]


def due_on(clusters: Collection[int], *, now: datetime, interval: timedelta, every_s: float) -> Due:
    """Return the services to turn to now on clusters that report events.

    Args:
        interval: from one turn to a service that moves to its next.
        every_s: from one call to the next, in seconds: settled services are limited by it.
    """
    late = InferenceService.objects.filter(cluster__in=list(clusters)).order_by(F("ticked_at").asc(nulls_first=True))
    before = Q(ticked_at=None) | Q(ticked_at__lte=now - interval) | Q(settled=TOUCHED)
    moving = late.filter(_MOVING).filter(before).values_list("cluster_id", "pk")[:_MOST_MOVING]
    rested = late.filter(settled=F("changes"), ticked_at__lte=now - max(interval, RESYNC_EVERY))
    rows = rested.values_list("pk", "cluster_id", "namespace", "name", "changes")[: math.ceil(RESYNC_PER_S * every_s)]
    return Due(list(moving), list(map(SettledRow._make, rows)))


def ticked(services: Sequence[int], *, now: datetime) -> None:
    """Record that services rest as their last turn left them."""
    if services:
        InferenceService.objects.filter(pk__in=services, settled=F("changes")).update(ticked_at=now)


def most_settled(interval: timedelta, *, reports_events: bool) -> int:
    """Return how many settled services one sweep reconciles at most. Pure."""
    return math.ceil((RESYNC_PER_S if reports_events else UNREPORTED_PER_S) * interval.total_seconds())


def interleaved(moving: Sequence[int], settled: Sequence[int]) -> Iterator[int]:
    """Yield all, each list in its order, the settled ones spread evenly so that neither waits for the other. Pure."""
    total, turn = len(moving) + len(settled), 0
    for place in range(total):
        is_settleds = (place + 1) * len(settled) // total > turn
        yield settled[turn] if is_settleds else moving[place - turn]
        turn += is_settleds


def heard(cluster: Cluster, driver: ClusterDriver, *, now: datetime) -> bool:
    """Touch the services with events since the last observation; return whether the cluster reports events.

    Args:
        cluster: as it was before this observation.
    """
    since = cluster.silent_since or cluster.checked_at or cluster.created_at
    try:
        named = driver.touched((since - HEARD_AGAIN).timestamp())
    except Unavailable:
        return False  # it became unreachable just now
    if named is None:
        return is_watched(cluster.watch, now)
    touch_named(cluster, named)
    return True


def is_watched(watch: Mapping[str, object], now: datetime) -> bool:
    """Return whether every watch of a cluster streams, by the recent record of its process. Pure."""
    said_at = watch.get("seen_at")
    if not isinstance(said_at, str) or not watch.get("total") or watch.get("streaming") != watch.get("total"):
        return False
    return now - datetime.fromisoformat(said_at) <= WATCH_FRESH


def touch(services: QuerySet[InferenceService]) -> None:
    """Have the next sweep reconcile the services, whatever the present tick of one of them finds."""
    services.exclude(settled=TOUCHED).update(settled=TOUCHED)


def touch_named(cluster: Cluster, names: Iterable[tuple[str, str]]) -> None:
    """Have the next sweep reconcile the services of these namespaces and names, on one cluster."""
    touch(named(cluster.pk, names))


def named(cluster_id: int, names: Iterable[tuple[str, str]]) -> QuerySet[InferenceService]:
    """Return the services of a cluster by namespaces and names; a few more where namespaces share names."""
    found = set(names)
    namespaces, services = ({each[part] for each in found} for part in (0, 1))
    return InferenceService.objects.filter(cluster=cluster_id, namespace__in=namespaces, name__in=services)


def touch_running_on(cluster: Cluster) -> None:
    """Have the next sweep reconcile the services of a cluster, since its file changed."""
    touch(cluster.services.all())


def reconcile_named(cluster_id: int, names: Iterable[tuple[str, str]]) -> int:
    """Have services of these namespaces and names reconciled soon, and by the next sweep; return how many there are."""
    found = 0
    for namespace, name in names:
        row = InferenceService.objects.filter(cluster=cluster_id, namespace=namespace, name=name)
        touch(row)  # a hint may be dropped while the cluster is busy
        for service_id in row.values_list("pk", flat=True):
            reconcile_soon(service_id)
            found += 1
    return found


def touch_in_namespace(namespace: str, names: Iterable[str]) -> None:
    """Have the next sweep reconcile services of a namespace: a secret that they use has another value."""
    touch(InferenceService.objects.filter(namespace=namespace, name__in=list(names)))


def touch_users_of(model: str) -> None:
    """Have the next sweep reconcile the services of a model, since an alias of it moved or was deleted."""
    touch(InferenceService.objects.filter(model_version__model__name=model))


def is_busy(cluster: Cluster, *, now: datetime) -> bool:
    """Return whether a controller has the cluster, or some worker ticks one of its services right now."""
    if cluster.swept_until is not None and cluster.swept_until > now:
        return True
    return InferenceService.objects.filter(cluster=cluster, lease_expires_at__gt=now).exists()


def _ids(services: QuerySet[InferenceService], limit: int | None = None) -> list[int]:
    return list(services.order_by(F("ticked_at").asc(nulls_first=True)).values_list("pk", flat=True)[:limit])
