"""Time in which a cluster was not observed, because the control plane was off or the cluster away. Pure.

A cluster that is observed all the time has none, however long a service of many waits for its turn: that time counts
for its rollout.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

PLANNED = timedelta(minutes=1)
"""Longest time between two observations of a cluster that goes as planned: a sweep, and its last turn."""
_KEPT = 50

Period = tuple[datetime, datetime]


def unseen(periods: Iterable[Period], *, observed_at: datetime | None, since: datetime, now: datetime) -> timedelta:
    """Return how much of the time from `since` to `now` was not observed, beyond what is planned.

    Args:
        periods: of the cluster, as `with_gap` keeps them.
        observed_at: the last observation of the cluster; None before the first.
        since: when the service was last seen, with its cluster.
    """
    last = max(observed_at or since, since)
    parts = (min(end, now) - max(begin, since) for begin, end in (*periods, (last + PLANNED, now)))
    return sum((part for part in parts if part > timedelta(0)), timedelta(0))


def with_gap(periods: Sequence[Period], *, observed_at: datetime | None, now: datetime) -> list[Period]:
    """Return the newest periods, with that since `observed_at` where it was longer than planned."""
    if observed_at is None or now - observed_at <= PLANNED:
        return list(periods)
    return [*periods, (observed_at + PLANNED, now)][-_KEPT:]


def stored(value: Iterable[Sequence[str]]) -> list[Period]:
    """Return the periods of `periods_json`."""
    return [(datetime.fromisoformat(begin), datetime.fromisoformat(end)) for begin, end in value]


def periods_json(periods: Iterable[Period]) -> list[list[str]]:
    """Return the periods in a form for JSON."""
    return [[begin.isoformat(), end.isoformat()] for begin, end in periods]
