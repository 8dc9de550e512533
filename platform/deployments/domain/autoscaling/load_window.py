"""Load window: each replica's recent load, from its counters of the last seconds. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from deployments.domain.autoscaling.replica_count import Reading
from deployments.domain.service_file.scaling import ScaleMetric
from integrations.clusters.base import Sample

WINDOW_S = 10.0
"""Window over which requests in flight are averaged and rates are computed, in seconds."""


@dataclass(frozen=True, slots=True)
class Look:
    """One replica's counters at one moment.

    Attributes:
        at: Unix seconds.
        started_at: of its process; counters restart with it.
        answered: requests without error, the ones in `queue_us`.
    """

    at: float
    started_at: float
    in_flight: int
    requests: int
    answered: int
    queue_us: int


Looks = Mapping[str, Sequence[Look]]  # by replica, oldest first


def looked(before: Looks, samples: Iterable[Sample], revision: str, at: float) -> dict[str, list[Look]]:
    """Return the samples of the last seconds, with a new one of each of the revision's replicas that has one.

    Samples from before the set of replicas changed say nothing about each one's load, and are dropped.
    """
    now = {
        sample.source: Look(
            at, sample.started_at, sample.in_flight, sample.requests, _answered(sample), sample.queue_us
        )
        for sample in samples
        if sample.revision == revision and sample.in_flight is not None
    }
    same = {name: look.started_at for name, look in now.items()} == {
        name: looks[-1].started_at for name, looks in before.items()
    }
    kept = {name: [look for look in looks if at - WINDOW_S <= look.at < at] for name, looks in before.items() if same}
    return {name: [*kept.get(name, ()), look] for name, look in now.items()}


def _answered(sample: Sample) -> int:
    return sample.requests - sample.client_errors - sample.server_errors


def readings(looks: Looks, targets: Mapping[str, float]) -> list[Reading]:
    """Return each metric's mean over the replicas."""
    found = []
    for metric, target in targets.items():
        values = [value for each in looks.values() if (value := _value(metric, each)) is not None]
        mean = sum(values) / len(values) if values else None
        found.append(Reading(metric, target, mean, len(values)))
    return found


def _value(metric: str, looks: Sequence[Look]) -> float | None:
    """Return one replica's value; None where the samples do not give it."""
    first, last = looks[0], looks[-1]
    if metric == ScaleMetric.CONCURRENCY:
        return sum(look.in_flight for look in looks) / len(looks)
    if last.at == first.at:
        return None
    if metric == ScaleMetric.RPS:
        return (last.requests - first.requests) / (last.at - first.at)
    if metric != ScaleMetric.QUEUE_TIME:
        return None  # only the cluster's autoscaler knows it
    answered = last.answered - first.answered
    if not answered:
        return None if last.in_flight else 0.0
    return (last.queue_us - first.queue_us) / answered / 1000


def looks_json(looks: Looks) -> dict[str, Any]:
    """Return the samples as JSON."""
    return {replica: [asdict(look) for look in each] for replica, each in looks.items()}


def stored_looks(value: Mapping[str, Any]) -> dict[str, list[Look]]:
    """Return the samples from their JSON."""
    return {replica: [Look(**look) for look in each] for replica, each in value.items()}
