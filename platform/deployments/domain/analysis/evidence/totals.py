"""Counter totals over one step's window, across processes that start, restart and stop. Pure.

A process counts from its own start. Its count in the window is the difference to the sample before; where it restarted
in between (another `started_at`, or a counter that fell) all of the new count is in the window, since the count before
was read up to the last sample. A process first seen in the window counts in full if it started in the window, else from
now on. A process that disappears keeps its count.

Where replicas' counters replace the gateway's, requests in flight at a process's last sample that ended with it are
server errors, and a restart counts as at least one: a request met it, or was refused until it was noticed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import accumulate
from typing import Any

from deployments.domain.analysis.evidence import batch_profile as batches
from deployments.domain.analysis.evidence.batch_profile import Batches
from integrations.clusters.base import BatchTime, Sample

GATEWAY = "gateway"
MIRROR = "mirror"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Requests by latency; `counts` has one bucket more than `edges_us` (upper edges, without +Inf)."""

    edges_us: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """Return the number of requests."""
        return sum(self.counts)

    def slower_than(self, edge_us: float) -> int:
        """Return how many requests were slower than an edge; other values are rounded up to the next edge."""
        return sum(count for lower, count in zip(self.edges_us, self.counts[1:], strict=False) if lower >= edge_us)

    def edge_from(self, limit_us: float) -> float | None:
        """Return the lowest edge that is not below a limit; None where all are."""
        return next((edge for edge in self.edges_us if edge >= limit_us), None)

    def edge_of(self, quantile: float) -> float | None:
        """Return the lowest edge that at least `quantile` of the requests did not exceed; the highest where none is.

        None without requests.
        """
        if not self.total:
            return None
        needed = quantile * self.total
        reached = zip(self.edges_us, accumulate(self.counts), strict=False)
        return next((edge for edge, count in reached if count >= needed), self.edges_us[-1])

    def plus(self, other: "Histogram") -> "Histogram":
        """Return the sum of both; buckets of other edges go into the next higher bucket here."""
        if not other.counts:
            return self
        if not self.counts:
            return other
        counts = list(self.counts)
        for index, count in enumerate(other.counts):
            upper = other.edges_us[index] if index < len(other.edges_us) else float("inf")
            counts[next((i for i, edge in enumerate(self.edges_us) if edge >= upper), len(self.edges_us))] += count
        return Histogram(self.edges_us, tuple(counts))


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests of one revision in the window: errors from the gateway's counters, the rest from its replicas'.

    For a shadow the gateway counts the copies it received. Replicas that replace the gateway have counted both.
    """

    requests: int = 0
    client_errors: int = 0
    server_errors: int = 0
    latency: Histogram = Histogram()
    batches: Batches = ()


_OF_SAMPLE = tuple(each.name for each in fields(Sample) if each.name != "models")  # which count for no rollout


@dataclass(frozen=True, slots=True)
class Totals:
    """The counts since `since` (Unix seconds), and the last sample of every process, which the next tick continues."""

    since: float
    counts: Mapping[str, Counts] = field(default_factory=dict)
    last: Mapping[tuple[str, str], Sample] = field(default_factory=dict)

    def of(self, revision: str) -> Counts:
        """Return the counts of a revision, zeros for an unknown one."""
        return self.counts.get(revision, Counts())


def begin(samples: Iterable[Sample], since: float) -> Totals:
    """Return a window whose zero is these samples."""
    return Totals(since=since, last={(sample.source, sample.revision): sample for sample in samples})


def add(totals: Totals, samples: Iterable[Sample]) -> Totals:
    """Return the totals with the counts since the samples before."""
    counts, last = dict(totals.counts), dict(totals.last)
    for sample in samples:
        key = (sample.source, sample.revision)
        before = last.get(key)
        new = _since(before, sample, totals.since)
        last[key] = _with_restarts(before, sample)
        if new is not None:
            counts[sample.revision] = _plus(counts.get(sample.revision, Counts()), new)
    return replace(totals, counts=counts, last=last)


def lifetime_latency(samples: Iterable[Sample], revision: str) -> Histogram:
    """Return the latency of all requests that a revision's running replicas have answered."""
    total = Histogram()
    for sample in samples:
        if sample.revision == revision and sample.source not in (GATEWAY, MIRROR):
            total = total.plus(Histogram(sample.latency_edges_us, sample.latency_counts))
    return total


def _since(before: Sample | None, now: Sample, window_start: float) -> Sample | None:
    """Return the counts of `now` in the window since `before`; None where they cannot be known."""
    if before is None:
        return _with_lost(now, min(1, now.restarts)) if now.started_at >= window_start else None
    lost = _lost(before, now)
    if not before.latency_edges_us:  # a histogram begins with the first request
        before = replace(before, latency_edges_us=now.latency_edges_us, latency_counts=(0,) * len(now.latency_counts))
    if not _began_again(before, now):
        now = replace(
            now,
            requests=now.requests - before.requests,
            client_errors=now.client_errors - before.client_errors,
            server_errors=now.server_errors - before.server_errors,
            latency_counts=tuple(b - a for a, b in zip(before.latency_counts, now.latency_counts, strict=True)),
            batches=batches.minus(now.batches, before.batches),
        )
    return _with_lost(now, lost)


def _with_restarts(before: Sample | None, now: Sample) -> Sample:
    """Return the sample with a restart that its counters show before the cluster reports it."""
    if before is None or not now.replaces_gateway:
        return now
    least = before.restarts + (before.started_at != now.started_at)
    return replace(now, restarts=max(now.restarts, least))


def _lost(before: Sample, now: Sample) -> int:
    """Return the least number of requests that were not answered because the process ended."""
    restarts = _with_restarts(before, now).restarts - before.restarts
    return max(restarts, before.in_flight or 0) if restarts > 0 else 0


def _with_lost(now: Sample, lost: int) -> Sample:
    if not now.replaces_gateway:
        return now
    return replace(now, requests=now.requests + lost, server_errors=now.server_errors + lost)


def _began_again(before: Sample, now: Sample) -> bool:
    return (
        before.started_at != now.started_at
        or before.latency_edges_us != now.latency_edges_us
        or now.requests < before.requests
        or now.client_errors < before.client_errors
        or now.server_errors < before.server_errors
        or any(b < a for a, b in zip(before.latency_counts, now.latency_counts, strict=True))
        or batches.has_fallen(now.batches, before.batches)
    )


def _plus(counts: Counts, sample: Sample) -> Counts:
    if sample.source in (GATEWAY, MIRROR) or sample.replaces_gateway:
        counts = replace(
            counts,
            requests=counts.requests + sample.requests,
            client_errors=counts.client_errors + sample.client_errors,
            server_errors=counts.server_errors + sample.server_errors,
        )
    if sample.source in (GATEWAY, MIRROR):
        return counts
    return replace(
        counts,
        latency=counts.latency.plus(Histogram(sample.latency_edges_us, sample.latency_counts)),
        batches=batches.plus(counts.batches, sample.batches),
    )


def totals_json(totals: Totals) -> dict[str, Any]:
    """Return the totals as JSON, which `stored_totals` reads back to an equal value."""
    return {
        "since": totals.since,
        "counts": {revision: asdict(counts) for revision, counts in totals.counts.items()},
        "last": [{name: getattr(sample, name) for name in _OF_SAMPLE} for sample in totals.last.values()],
    }


def stored_totals(value: Mapping[str, Any]) -> Totals:
    """Return the totals from the JSON of `totals_json`."""
    samples = [_sample(each) for each in value["last"]]
    return Totals(
        since=value["since"],
        counts={revision: _counts(each) for revision, each in value["counts"].items()},
        last={(sample.source, sample.revision): sample for sample in samples},
    )


def _counts(columns: Mapping[str, Any]) -> Counts:
    latency = columns["latency"]
    histogram = Histogram(tuple(latency["edges_us"]), tuple(latency["counts"]))
    return Counts(**{**columns, "latency": histogram, "batches": _batches(columns)})


def _sample(columns: Mapping[str, Any]) -> Sample:
    edges, counts = tuple(columns["latency_edges_us"]), tuple(columns["latency_counts"])
    return Sample(**{**columns, "latency_edges_us": edges, "latency_counts": counts, "batches": _batches(columns)})


def _batches(columns: Mapping[str, Any]) -> Batches:
    return tuple(BatchTime(*each) for each in columns.get("batches", ()))
