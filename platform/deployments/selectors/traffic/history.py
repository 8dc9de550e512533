"""Traffic history of a service by revision, as columns for charts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from deployments.models import InferenceService, TrafficPoint
from deployments.selectors.traffic.recent import quantile_edge

Column = list[float | None]
_GAP = timedelta(seconds=1)
"""Each point begins where the one before ends; a larger distance is a time in which nothing ran."""


@dataclass(frozen=True, slots=True)
class RevisionTraffic:
    """The traffic of one revision; all columns are as long as the history's `at`, None where it did not run.

    Attributes:
        role: stable, canary, retiring, retired or failed, as it is now.
        replicas: how many accepted requests.
    """

    name: str
    model_version: int
    role: str
    per_second: Column
    error_percent: Column
    p99_ms: Column
    replicas: Column


@dataclass(frozen=True, slots=True)
class TrafficHistory:
    """The traffic of a service.

    Attributes:
        stopped: it accepts no requests until resumed.
        at: Unix seconds of the samples, oldest first, and of a moment in each time in which nothing ran.
        requests: of all revisions in this time.
    """

    service: str
    stopped: bool
    at: list[float]
    requests: int
    revisions: tuple[RevisionTraffic, ...]


def traffic_history(*, service: InferenceService, now: datetime, length: timedelta) -> TrafficHistory:
    """Return the traffic of a service over the time that ends now."""
    points = list(
        TrafficPoint.objects.filter(service=service, at__gt=now - length)
        .select_related("revision__model_version")
        .order_by("revision__number", "at")
    )
    moments = _moments(points, until=now if service.live_at is None else None)
    by_revision: dict[int, list[TrafficPoint]] = {}
    for point in points:
        by_revision.setdefault(point.revision_id, []).append(point)
    return TrafficHistory(
        service=str(service),
        stopped=service.stopped,
        at=[round(moment.timestamp(), 2) for moment in moments],
        requests=sum(point.requests for point in points),
        revisions=tuple(_revision(each, moments) for each in by_revision.values()),
    )


def _moments(points: Iterable[TrafficPoint], *, until: datetime | None) -> list[datetime]:
    """Return the moments of points by time, with one more in each gap, at which no revision has a point.

    Args:
        until: the end of a gap after the last point; None without one.
    """
    began = {point.at: point.at - timedelta(seconds=point.seconds) for point in points}
    moments: list[datetime] = []
    for at in sorted(began):
        if moments and began[at] - moments[-1] > _GAP:
            moments.append(began[at])
        moments.append(at)
    return [*moments, until] if moments and until is not None else moments


def _revision(points: Sequence[TrafficPoint], moments: Sequence[datetime]) -> RevisionTraffic:
    revision, by_moment = points[0].revision, {point.at: point for point in points}
    found = [by_moment.get(moment) for moment in moments]
    return RevisionTraffic(
        name=revision.name,
        model_version=revision.model_version.number,
        role=revision.role,
        per_second=[None if point is None else round(point.requests / point.seconds, 3) for point in found],
        error_percent=[_errors(point) for point in found],
        p99_ms=[_p99(point) for point in found],
        replicas=[None if point is None else float(point.replicas) for point in found],
    )


def _errors(point: TrafficPoint | None) -> float | None:
    if point is None or not point.requests:
        return None
    return round(100 * point.server_errors / point.requests, 3)


def _p99(point: TrafficPoint | None) -> float | None:
    edge_us = None if point is None else quantile_edge([point.latency], 0.99)
    return None if edge_us is None else edge_us / 1000
