"""Traffic history of every live service, sampled for the charts of pages. Called by the reconciler's ticks.

A sample reads the same counters as the analysis, every fifteen seconds, or with the next tick where those of a settled
service are rarer (`schedule`), so that the load of many services stays bounded. It stores the difference to the sample
before. Where counters cannot be read none is taken, and the next one has the difference, spread over its time. After a
stop the history starts again: nothing is stored of the time in which the service did not run, nor of answers between
the last sample and the stop.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from common.errors import Unavailable
from deployments.domain.analysis.evidence import totals
from deployments.domain.analysis.evidence.totals import Counts, Histogram
from deployments.models import InferenceService, Revision, TrafficLook, TrafficPoint
from integrations.clusters.base import Observed, Sample

EVERY = timedelta(seconds=15)
KEPT = timedelta(hours=3)


def look(
    service: InferenceService, seen: Observed | None, metrics: Callable[[Observed], Sequence[Sample]], now: datetime
) -> Sequence[Sample] | None:
    """Return the service's counters; None where no sample is due, and where they cannot be read."""
    is_due = service.traffic_at is None or now - service.traffic_at >= EVERY
    if seen is None or service.live_at is None or not is_due:
        return None
    try:
        return metrics(seen)
    except Unavailable:
        return ()


def keep(
    service: InferenceService,
    revisions: Iterable[Revision],
    seen: Observed | None,
    samples: Sequence[Sample] | None,
    now: datetime,
) -> None:
    """Store the sample of the tick that began at `now`; a sample is no change of the service."""
    if seen is None or samples is None:
        return
    service.traffic_at = now
    InferenceService.objects.filter(pk=service.pk).update(traffic_at=now)
    if not samples:
        return  # they could not be read; the next sample is due as usual
    own = [replace(sample, batches=()) for sample in samples if sample.source != totals.MIRROR]
    before = TrafficLook.objects.filter(service=service).first()
    if before is not None and _goes_on(service, before) and before.at < now:
        window = totals.add(totals.stored_totals(before.totals), own)
        TrafficPoint.objects.bulk_create(_points(revisions, seen, window, before.at, now))
    after = totals.totals_json(totals.begin(own, now.timestamp()))
    TrafficLook.objects.update_or_create(service=service, defaults={"at": now, "totals": after})


def _goes_on(service: InferenceService, before: TrafficLook) -> bool:
    """Return whether the service has accepted requests ever since the sample before, without a stop."""
    return service.live_at is not None and service.live_at <= before.at


def _points(
    revisions: Iterable[Revision], seen: Observed, window: totals.Totals, began: datetime, now: datetime
) -> Iterator[TrafficPoint]:
    for revision in revisions:
        there = seen.revision(revision.name)
        if there is None:
            continue
        counts: Counts = window.of(revision.name)
        yield TrafficPoint(
            service_id=revision.service_id,
            revision=revision,
            at=now,
            seconds=(now - began).total_seconds(),
            requests=counts.requests,
            server_errors=counts.server_errors,
            latency=buckets(counts.latency),
            replicas=there.ready_replicas,
        )


def buckets(latency: Histogram) -> list[list[float | int | None]]:
    """Return a histogram in the form of a point. Pure."""
    edges = (*latency.edges_us, None)
    return [[edge, count] for edge, count in zip(edges, latency.counts, strict=False) if count]
