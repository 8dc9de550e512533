"""Observed traffic of the stable revision, the input of a rollout forecast. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from deployments.domain.analysis.evidence.labelled import Habits
from deployments.domain.analysis.evidence.totals import GATEWAY, lifetime_latency
from deployments.domain.policy import Policy
from integrations.clusters.base import Sample

_LEAST_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """The observed traffic of stable.

    Attributes:
        per_second: requests of clients on average; None where unknown, and then the forecast has no times.
        seconds: the length of the observation.
        server_errors, client_errors: their shares, 0..1.
        slow: by quantile, the share slower than the edge that this quantile fixes.
        labels: by scorer, what is known of stable's labels.
    """

    per_second: float | None = None
    seconds: float = 0.0
    server_errors: float = 0.0
    client_errors: float = 0.0
    slow: Mapping[float, float] = field(default_factory=dict)
    labels: Mapping[str, Habits] = field(default_factory=dict)


def traffic_of(samples: Iterable[Sample], stable: str, policy: Policy, at: float) -> Traffic:
    """Return the traffic from a stable revision's counters, since the gateway, or each replica, started counting.

    Args:
        at: now, in Unix seconds.
    """
    samples = [sample for sample in samples if sample.revision == stable]
    counting = [sample for sample in samples if sample.source == GATEWAY or sample.replaces_gateway]
    requests = sum(sample.requests for sample in counting)
    seconds = at - min((sample.started_at for sample in counting), default=at)
    if not requests or seconds < _LEAST_SECONDS:
        return Traffic()
    latency = lifetime_latency(samples, stable)
    slow = {}
    for quantile in {step.gate.latency_quantile for step in policy.steps if step.gate is not None}:
        edge = latency.edge_of(quantile)
        if edge is not None:
            slow[quantile] = latency.slower_than(edge) / latency.total
    return Traffic(
        # Each at its own rate: a replica that started later did not have a lower one for that.
        per_second=sum(sample.requests / max(at - sample.started_at, _LEAST_SECONDS) for sample in counting),
        seconds=seconds,
        server_errors=sum(sample.server_errors for sample in counting) / requests,
        client_errors=sum(sample.client_errors for sample in counting) / requests,
        slow=slow,
    )
