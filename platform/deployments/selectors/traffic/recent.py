"""Recent traffic of services, in figures for lists and pages."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from deployments.models import TrafficPoint
from deployments.views.traffic import BARS, Traffic

DRAWN = timedelta(minutes=30)
RECENT = timedelta(minutes=5)
CURRENT = timedelta(seconds=50)
"""Maximum age of the newest points while sampling works; older ones say nothing about the present."""
_UNTIL_NEXT = 1.5
"""With many services each is sampled less often: a point is current until the next one is so many intervals late."""

Buckets = Sequence[tuple[float | None, int]]


def traffic_of(service_ids: Iterable[int], now: datetime) -> Mapping[int, Traffic]:
    """Return the traffic of each service with a sample in the drawn time, by two queries."""
    recent, ids = now - RECENT, list(service_ids)
    points = TrafficPoint.objects.filter(service__in=ids, at__gt=now - DRAWN)
    counted: dict[int, list[Counted]] = defaultdict(list)
    columns = points.values_list("service_id", "at", "seconds", "requests", "server_errors")
    for service_id, at, seconds, requests, server_errors in columns:
        counted[service_id].append(Counted(at, seconds, requests, server_errors))
    buckets: dict[int, list[tuple[datetime, Buckets]]] = defaultdict(list)
    late = points.filter(Q(at__gt=recent) | Q(seconds__gt=RECENT.total_seconds() / _UNTIL_NEXT))
    for service_id, at, latency in late.values_list("service_id", "at", "latency"):
        buckets[service_id].append((at, latency))
    return {service_id: _traffic(each, buckets[service_id], now) for service_id, each in counted.items()}


@dataclass(frozen=True, slots=True)
class Counted:
    """Requests of a revision between two samples, of which the second was `at`."""

    at: datetime
    seconds: float
    requests: int
    server_errors: int


def _traffic(points: Sequence[Counted], buckets: Iterable[tuple[datetime, Buckets]], now: datetime) -> Traffic:
    newest = max(point.at for point in points)
    valid_for = timedelta(seconds=_UNTIL_NEXT * max(point.seconds for point in points if point.at == newest))
    recent = now - max(RECENT, valid_for)
    lately = [point for point in points if point.at > recent]
    requests = sum(point.requests for point in lately)
    errors = sum(point.server_errors for point in lately)
    edge_us = quantile_edge((latency for at, latency in buckets if at > recent), 0.99)
    return Traffic(
        per_second=sum(map(_rate, (p for p in points if p.at == newest)))
        if newest > now - max(CURRENT, valid_for)
        else None,
        rates=rates_of(points, now - DRAWN, now, BARS),
        requests=requests,
        error_percent=100 * errors / requests if requests else None,
        p99_ms=None if edge_us is None else edge_us / 1000,
    )


def rates_of(points: Iterable[Counted], begin: datetime, end: datetime, bars: int) -> tuple[float | None, ...]:
    """Return requests per second in each of `bars` equal parts of a time; None in parts without a point. Pure.

    A point's requests are spread evenly over its seconds; points of several revisions add up.
    """
    width = (end - begin).total_seconds() / bars
    requests, covered = [0.0] * bars, [0.0] * bars
    for moment, group in _by_moment(points).items():
        seconds = max(point.seconds for point in group)
        last = (moment - begin).total_seconds()
        rate = sum(map(_rate, group))
        first = max(0.0, last - seconds)
        for index in range(int(first / width), min(bars, int(last / width) + 1)):
            part = min(last, (index + 1) * width) - max(first, index * width)
            if part > 0:
                requests[index] += rate * part
                covered[index] += part
    return tuple(n / time if time else None for n, time in zip(requests, covered, strict=True))


def quantile_edge(histograms: Iterable[Buckets], quantile: float) -> float | None:
    """Return the least edge that `quantile` of the requests did not exceed; None without any, and above all. Pure."""
    counts: dict[float, int] = defaultdict(int)
    for buckets in histograms:
        for edge, count in buckets:
            counts[float("inf") if edge is None else edge] += count
    needed, reached = quantile * sum(counts.values()), 0
    for edge in sorted(counts):
        reached += counts[edge]
        if reached >= needed:
            return None if edge == float("inf") else edge
    return None


def _by_moment(points: Iterable[Counted]) -> dict[datetime, list[Counted]]:
    found: dict[datetime, list[Counted]] = defaultdict(list)
    for point in points:
        found[point.at].append(point)
    return found


def _rate(point: Counted) -> float:
    return point.requests / point.seconds if point.seconds else 0.0
