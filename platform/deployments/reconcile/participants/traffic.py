"""Traffic history of every live service, sampled for the charts of pages; a participant.

A sample reads the same counters as the analysis, every fifteen seconds, or with the next tick where those of a settled
service are rarer (`schedule`), so that the load of many services stays bounded. It stores the difference to the sample
before. Where counters cannot be read none is taken, and the next one has the difference, spread over its time. After a
stop the history starts again: nothing is stored of the time in which the service did not run, nor of answers between
the last sample and the stop.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from common.errors import Unavailable
from deployments.domain.analysis.evidence import totals
from deployments.domain.analysis.evidence.totals import Counts, Histogram
from deployments.models import InferenceService, TrafficLook, TrafficPoint
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
        service, now = change.service, change.now
        if found is None:
            return
        service.traffic_at = now
        if not found.samples:
            return  # they could not be read; the next sample is due as usual
        own = [replace(sample, batches=()) for sample in found.samples if sample.source != totals.MIRROR]
        before = TrafficLook.objects.filter(service=service).first()
        if before is not None and _goes_on(service, before) and before.at < now:
            window = totals.add(totals.stored_totals(before.totals), own)
            TrafficPoint.objects.bulk_create(_points(change, found.seen, window, before.at))
        look = before or TrafficLook(service=service)
        look.at, look.totals = now, totals.totals_json(totals.begin(own, now.timestamp()))
        look.save()


TRAFFIC = Traffic()


def _goes_on(service: InferenceService, before: TrafficLook) -> bool:
    """Return whether the service has accepted requests ever since the sample before, without a stop."""
    return service.live_at is not None and service.live_at <= before.at


def _points(change: Change, seen: Observed, window: totals.Totals, began: datetime) -> Iterator[TrafficPoint]:
    rollout = change.rollout
    without_weight = None if rollout is None or rollout.weight else rollout.to_revision_id
    for revision in change.revisions:
        observed = seen.revision(revision.name)
        if observed is None:
            continue
        counts: Counts = window.of(revision.name)
        yield TrafficPoint(
            service_id=revision.service_id,
            revision=revision,
            at=change.now,
            seconds=(change.now - began).total_seconds(),
            requests=counts.requests,
            client_errors=counts.client_errors,
            server_errors=counts.server_errors,
            latency=buckets(counts.latency),
            replicas=observed.ready_replicas,
            has_weight=revision.pk != without_weight,
        )


def buckets(latency: Histogram) -> list[list[float | int | None]]:
    """Return a histogram in the form of a point. Pure."""
    edges = (*latency.edges_us, None)
    return [[edge, count] for edge, count in zip(edges, latency.counts, strict=False) if count]
