"""Which services a sweep turns to: all of which something goes on, and of the settled ones only so many in a second.

    something goes on --a turn found nothing more--> settled --changed, or touched by its cluster--> something goes on

Settled ones are looked at again in their time, oldest first, for what nobody reported: every minute where the
cluster reports what happens, at every sweep where it does not. Where they are many, the time from one look to the next
grows with their number, and a sweep's cost does not.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from clusters.models import Cluster
from common.errors import Unavailable
from deployments.domain.service_state.quiescence import TOUCHED
from deployments.models import InferenceService
from integrations.clusters.base import ClusterDriver

RESYNC_EVERY = timedelta(seconds=60)
"""From one look at a settled service to the next, at least, where its cluster reports what happens: at rest a service
costs its worker less than a thousandth of a core."""
RESYNC_PER_S = 20.0
"""So many settled services of a cluster that tells what happens to them are turned to in a second, at most."""
UNTOLD_PER_S = 100.0
"""The same where nobody tells."""
WATCH_FRESH = timedelta(seconds=20)
"""A watcher says every five seconds how its watches do."""
HEARD_AGAIN = timedelta(seconds=5)
"""What happened so long before the last look is heard again, so that a sweep that was killed loses nothing."""
_MOVING = ~Q(settled=F("changes"))


def services_due(cluster: Cluster, *, now: datetime, interval: timedelta, is_told: bool) -> list[int]:
    """Return the ids of the services to turn to now, those that waited longest first, settled ones in between.

    Args:
        interval: from one sweep to the next.
        is_told: whether the cluster tells what happens to services.
    """
    # Beat's own jitter must not make a service miss every other sweep.
    before = now - interval / 2
    resync = max(interval, RESYNC_EVERY) if is_told else interval
    late = InferenceService.objects.filter(cluster=cluster)
    moving = _ids(late.filter(_MOVING).filter(Q(ticked_at=None) | Q(ticked_at__lte=before)))
    rested = late.filter(settled=F("changes"), ticked_at__lte=before - resync + interval)
    settled = _ids(rested, most_settled(interval, is_told=is_told))
    return list(interleaved(moving, settled))


def most_settled(interval: timedelta, *, is_told: bool) -> int:
    """Return how many settled services one sweep turns to at most. Pure."""
    return math.ceil((RESYNC_PER_S if is_told else UNTOLD_PER_S) * interval.total_seconds())


def interleaved(moving: Sequence[int], settled: Sequence[int]) -> Iterator[int]:
    """Yield all, each list in its order, the settled ones spread evenly so that neither waits for the other. Pure."""
    total, turn = len(moving) + len(settled), 0
    for place in range(total):
        is_settleds = (place + 1) * len(settled) // total > turn
        yield settled[turn] if is_settleds else moving[place - turn]
        turn += is_settleds


def heard(cluster: Cluster, driver: ClusterDriver, *, now: datetime) -> bool:
    """Touch the services to which something happened since the last look; returns whether the cluster tells of that.

    Args:
        cluster: as it was before this look.
    """
    since = cluster.silent_since or cluster.checked_at or cluster.created_at
    try:
        named = driver.touched((since - HEARD_AGAIN).timestamp())
    except Unavailable:
        return False  # it went away just now
    if named is None:
        return is_watched(cluster.watch, now)
    touch_named(cluster, named)
    return True


def is_watched(watch: Mapping[str, object], now: datetime) -> bool:
    """Return whether every watch of a cluster streams, by what the process that keeps them recorded lately. Pure."""
    said_at = watch.get("seen_at")
    if not isinstance(said_at, str) or not watch.get("total") or watch.get("streaming") != watch.get("total"):
        return False
    return now - datetime.fromisoformat(said_at) <= WATCH_FRESH


def touch(services: QuerySet[InferenceService]) -> None:
    """Have the next sweep turn to the services, whatever the present turn of one of them finds."""
    services.exclude(settled=TOUCHED).update(settled=TOUCHED)


def touch_named(cluster: Cluster, names: Iterable[tuple[str, str]]) -> None:
    """Have the next sweep turn to the services of these namespaces and names, on one cluster."""
    if found := set(names):
        # A few more where namespaces share names do no harm.
        namespaces, services = ({each[part] for each in found} for part in (0, 1))
        touch(InferenceService.objects.filter(cluster=cluster, namespace__in=namespaces, name__in=services))


def touch_users_of(model: str) -> None:
    """Have the next sweep turn to the services of a model, since an alias of it moved or is gone."""
    touch(InferenceService.objects.filter(model_version__model__name=model))


def _ids(services: QuerySet[InferenceService], limit: int | None = None) -> list[int]:
    return list(services.order_by(F("ticked_at").asc(nulls_first=True)).values_list("pk", flat=True)[:limit])
