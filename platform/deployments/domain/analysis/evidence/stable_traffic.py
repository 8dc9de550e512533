"""What stable has been seen to do, from which a plan is made. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from deployments.domain.analysis.evidence.totals import GATEWAY, lifetime_latency
from deployments.domain.policy import Policy
from integrations.clusters.base import Sample

_LEAST_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """What stable has been seen to do.

    Attributes:
        per_second: requests of clients on average; None where that is not known, and then no times are told.
        seconds: over so long a time.
        server_errors, client_errors: shares of them, 0..1.
        slow: by quantile, the share slower than the edge that this quantile fixes.
    """

    per_second: float | None = None
    seconds: float = 0.0
    server_errors: float = 0.0
    client_errors: float = 0.0
    slow: Mapping[float, float] = field(default_factory=dict)


def traffic_of(samples: Iterable[Sample], stable: str, policy: Policy, at: float) -> Traffic:
    """Return what the counters of a stable revision say, since the gateway, or each of its replicas, counts them.

    Args:
        at: now, in Unix seconds.
    """
    samples = [sample for sample in samples if sample.revision == stable]
    counting = [sample for sample in samples if sample.source == GATEWAY or sample.stands_for_gateway]
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
        # Each at its own rate: a replica that came later did not have fewer requests for that.
        per_second=sum(sample.requests / max(at - sample.started_at, _LEAST_SECONDS) for sample in counting),
        seconds=seconds,
        server_errors=sum(sample.server_errors for sample in counting) / requests,
        client_errors=sum(sample.client_errors for sample in counting) / requests,
        slow=slow,
    )
