"""Traffic history of every live service, sampled for the charts of pages; a participant.

A sample reads the same counters as the analysis, every fifteen seconds, or with the next tick where those of a settled
service are rarer (`schedule`), so that the load of many services stays bounded. It stores the difference to the sample
before. Where counters cannot be read none is taken, and the next one has the difference, spread over its time. After a
stop the history starts again: nothing is stored of the time in which the service did not run, nor of answers between
the last sample and the stop.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from common.errors import Unavailable
from deployments.domain.analysis.evidence import totals
from deployments.domain.analysis.evidence.totals import Counts, Histogram
from deployments.models import TrafficLook, TrafficPoint
from deployments.reconcile.service_change import Change
from deployments.reconcile.turn import Participant, Turn
from integrations.clusters.base import Observed, Sample

EVERY = timedelta(seconds=15)
KEPT = timedelta(hours=3)


@dataclass(frozen=True, slots=True)
class Looked:
    """A sample that is due; `samples` are empty where the counters could not be read."""

    seen: Observed
    samples: Sequence[Sample]


class Traffic(Participant[Looked | None]):
    """Samples the traffic of a service; a sample is no change of it."""

    def collect(self, turn: Turn) -> Looked | None:
        """Return the service's counters; None where no sample is due."""
        service = turn.service
        is_due = service.traffic_at is None or turn.now - service.traffic_at >= EVERY
        if turn.seen is None or service.live_at is None or not is_due:
            return None
        try:
            return Looked(turn.seen, turn.samples())
        except Unavailable:
            return Looked(turn.seen, ())

    def record(self, change: Change, found: Looked | None) -> None:
        """Store the difference to the sample before."""
        service, rollout = change.service, change.rollout
        if found is None:
            return
        service.traffic_at = change.now
        if not found.samples or service.live_at is None:
            return  # they could not be read; the next sample is due as usual
        without_weight = None if rollout is None or rollout.weight else rollout.to_revision_id
        live = Live(service.pk, service.live_at, {row.name: row.pk for row in change.revisions}, without_weight)
        store(live, found, now=change.now)


TRAFFIC = Traffic()


@dataclass(frozen=True, slots=True)
class Live:
    """A service that accepts requests.

    Attributes:
        since: it has accepted them ever since then, without a stop.
        revisions: the ids of those that run, by name.
        without_weight: of the revision that gets no share of the requests; None where each has one.
    """

    service_id: int
    since: datetime
    revisions: Mapping[str, int]
    without_weight: int | None = None


def store(live: Live, found: Looked, *, now: datetime) -> int:
    """Store the difference to the sample before, and return how many requests it has; under the service's row lock."""
    own = [replace(sample, batches=()) for sample in found.samples if sample.source != totals.MIRROR]
    before = TrafficLook.objects.filter(service=live.service_id).first()
    points: list[TrafficPoint] = []
    if before is not None and live.since <= before.at < now:
        window = totals.add(totals.stored_totals(before.totals), own)
        points = list(_points(live, found.seen, window, began=before.at, ended=now))
        TrafficPoint.objects.bulk_create(points)
    new = totals.totals_json(totals.begin(own, now.timestamp()))
    look = before or TrafficLook(service_id=live.service_id)
    look.at, look.totals = now, new
    look.save(force_update=before is not None)
    return sum(point.requests for point in points)


def _points(
    live: Live, seen: Observed, window: totals.Totals, *, began: datetime, ended: datetime
) -> Iterator[TrafficPoint]:
    for name, revision_id in live.revisions.items():
        observed = seen.revision(name)
        if observed is None:
            continue
        counts: Counts = window.of(name)
        yield TrafficPoint(
            service_id=live.service_id,
            revision_id=revision_id,
            at=ended,
            seconds=(ended - began).total_seconds(),
            requests=counts.requests,
            client_errors=counts.client_errors,
            server_errors=counts.server_errors,
            latency=buckets(counts.latency),
            replicas=observed.ready_replicas,
            has_weight=revision_id != live.without_weight,
        )


def buckets(latency: Histogram) -> list[list[float | int | None]]:
    """Return a histogram in the form of a point. Pure."""
    edges = (*latency.edges_us, None)
    return [[edge, count] for edge, count in zip(edges, latency.counts, strict=False) if count]
