"""What stable has been seen to do, from which a plan is made. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from deployments.analysis.totals import GATEWAY, lifetime_latency
from deployments.policy import Policy
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
    """Return what the counters of a stable revision say, since the gateway has sent it requests.

    Args:
        at: now, in Unix seconds.
    """
    samples = [sample for sample in samples if sample.revision == stable]
    gateway = next((sample for sample in samples if sample.source == GATEWAY), None)
    if gateway is None or not gateway.requests or at - gateway.started_at < _LEAST_SECONDS:
        return Traffic()
    latency = lifetime_latency(samples, stable)
    slow = {}
    for quantile in {step.gate.latency_quantile for step in policy.steps if step.gate is not None}:
        edge = latency.edge_of(quantile)
        if edge is not None:
            slow[quantile] = latency.slower_than(edge) / latency.total
    seconds = at - gateway.started_at
    return Traffic(
        per_second=gateway.requests / seconds,
        seconds=seconds,
        server_errors=gateway.server_errors / gateway.requests,
        client_errors=gateway.client_errors / gateway.requests,
        slow=slow,
    )
