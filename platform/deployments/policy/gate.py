"""What a step's canary has to hold to: the `analysis` of a step. Pure."""

from dataclasses import dataclass
from datetime import timedelta

from common import durations
from common.errors import InvalidInput
from deployments.comparison.terms import Terms
from deployments.document import Document
from deployments.policy.comparison import parse_terms, terms_json


@dataclass(frozen=True, slots=True)
class Gate:
    """What a step's canary has to hold to.

    Attributes:
        min_requests: how many finished requests of the canary a verdict of Successful needs at least.
        max_error_percent: server errors among the canary's requests, as clients saw them.
        max_error_increase_percent: percentage points by which the canary's errors (server's and, apart, client's) may
            exceed stable's of the same window; None leaves them uncompared.
        latency_quantile: fixes the edge "slow" from stable: so many of stable's requests were faster.
        max_slow_percent: how many of the canary's requests may be slower than that edge; None leaves latency ungated.
        deadline: from the first request the canary gets; undecided by then is Inconclusive.
        comparison: what is asked of the answers to copies; None leaves answers uncompared.
    """

    min_requests: int = 100
    max_error_percent: float = 1.0
    max_error_increase_percent: float | None = 1.0
    latency_quantile: float = 0.95
    max_slow_percent: float | None = 15.0
    deadline: timedelta = timedelta(minutes=5)
    comparison: Terms | None = None


def parse_gate(document: Document) -> Gate:
    """Return the gate that the `analysis` of a step says; raise InvalidInput with the name of the field at fault."""
    comparison = document.optional("comparison")
    gate = Gate(
        min_requests=document.integer("minRequests", minimum=1, maximum=100_000_000, default=100),
        max_error_percent=document.number("maxErrorPercent", minimum=0, maximum=100, default=1.0),
        max_error_increase_percent=document.optional_number(
            "maxErrorIncreasePercent", minimum=0, maximum=100, default=1.0
        ),
        latency_quantile=document.number("latencyQuantile", minimum=0.5, maximum=0.9999, default=0.95),
        max_slow_percent=document.optional_number("maxSlowPercent", minimum=0, maximum=100, default=15.0),
        deadline=document.duration("deadline", default=timedelta(minutes=5), positive=True),
        comparison=None if comparison is None else parse_terms(comparison),
    )
    document.refuse_unknown()
    if gate.max_slow_percent is not None:
        nominal = 100 * (1 - gate.latency_quantile)
        if gate.max_slow_percent < nominal - 1e-9:
            raise InvalidInput(
                f"{document.path('maxSlowPercent')} is {gate.max_slow_percent:g}, but {nominal:g} % of stable's own "
                f"requests are slower than its {gate.latency_quantile:g} quantile; allow at least that many",
                field=document.path("maxSlowPercent"),
            )
    return gate


def gate_json(gate: Gate) -> dict[str, object]:
    """Return the `analysis` part of a step."""
    return {
        "minRequests": gate.min_requests,
        "maxErrorPercent": gate.max_error_percent,
        "maxErrorIncreasePercent": gate.max_error_increase_percent,
        "latencyQuantile": gate.latency_quantile,
        "maxSlowPercent": gate.max_slow_percent,
        "deadline": durations.render(gate.deadline),
        **({} if gate.comparison is None else {"comparison": terms_json(gate.comparison)}),
    }
