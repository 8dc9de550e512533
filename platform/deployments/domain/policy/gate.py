"""What a step's canary has to hold to: the `analysis` of a step. Pure."""

from dataclasses import dataclass, field
from datetime import timedelta

from common import durations
from common.document import Document
from common.errors import InvalidInput
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.policy.comparison import parse_terms, terms_json
from deployments.domain.policy.detect import Detect, detect_json, parse_detect
from deployments.domain.policy.metrics import Metric, metrics_json, parse_metrics

LONGEST_MS = 10_000.0
"""Where the runtime's histograms end; how much longer a request took they do not tell."""


@dataclass(frozen=True, slots=True)
class SlowLimit:
    """How many percent of the requests may take longer than `milliseconds`."""

    milliseconds: float
    percent: float


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
        max_slower_than: how many of the canary's requests may take longer than a time that is named; None names none.
        min_throughput_percent: of stable's rows per second of execution, what the canary has to do at least; None
            leaves throughput ungated.
        metrics: what Prometheus is asked besides.
        detect: decides nothing; the plan says how many requests it takes to find this.
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
    max_slower_than: SlowLimit | None = None
    min_throughput_percent: float | None = None
    metrics: tuple[Metric, ...] = ()
    detect: Detect = field(default_factory=Detect)


def parse_gate(document: Document) -> Gate:
    """Return the gate that the `analysis` of a step says; raise InvalidInput with the name of the field at fault."""
    comparison = document.optional("comparison")
    max_error_percent = document.number("maxErrorPercent", minimum=0, maximum=100, default=1.0)
    max_slow_percent = document.optional_number("maxSlowPercent", minimum=0, maximum=100, default=15.0)
    deadline = document.duration("deadline", default=timedelta(minutes=5), positive=True)
    gate = Gate(
        min_requests=document.integer("minRequests", minimum=1, maximum=100_000_000, default=100),
        max_error_percent=max_error_percent,
        max_error_increase_percent=document.optional_number(
            "maxErrorIncreasePercent", minimum=0, maximum=100, default=1.0
        ),
        latency_quantile=document.number("latencyQuantile", minimum=0.5, maximum=0.9999, default=0.95),
        max_slow_percent=max_slow_percent,
        deadline=deadline,
        comparison=None if comparison is None else parse_terms(comparison),
        max_slower_than=_slow_limit(document.optional("maxSlowerThan")),
        min_throughput_percent=None
        if document.raw("minThroughputPercent", None) is None
        else document.number("minThroughputPercent", minimum=1, maximum=1000),
        metrics=parse_metrics(document, deadline),
        detect=parse_detect(document.optional("detect"), document.path("detect"), max_error_percent, max_slow_percent),
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


def _slow_limit(document: Document | None) -> SlowLimit | None:
    if document is None:
        return None
    limit = SlowLimit(
        milliseconds=document.number("ms", minimum=0.05, maximum=LONGEST_MS),
        percent=document.number("percent", minimum=0, maximum=100),
    )
    document.refuse_unknown()
    return limit


def parse_background(document: Document) -> Gate:
    """Return the gate that the `analysis` of a whole policy says; it has no deadline of its own."""
    if document.raw("deadline", None) is not None:
        raise InvalidInput(
            f"{document.path('deadline')} is there, but the analysis in the background goes on as long as the rollout; "
            "say deadline beside it for the whole rollout, or in the analysis of a step",
            field=document.path("deadline"),
        )
    return parse_gate(document)


def background_json(gate: Gate) -> dict[str, object]:
    """Return the `analysis` part of a whole policy."""
    return {name: value for name, value in gate_json(gate).items() if name != "deadline"}


def gate_json(gate: Gate) -> dict[str, object]:
    """Return the `analysis` part of a step."""
    slow = gate.max_slower_than
    asked: dict[str, object] = {
        "maxSlowerThan": None if slow is None else {"ms": slow.milliseconds, "percent": slow.percent},
        "minThroughputPercent": gate.min_throughput_percent,
        "metrics": metrics_json(gate.metrics) or None,
    }
    return {
        "minRequests": gate.min_requests,
        "maxErrorPercent": gate.max_error_percent,
        "maxErrorIncreasePercent": gate.max_error_increase_percent,
        "latencyQuantile": gate.latency_quantile,
        "maxSlowPercent": gate.max_slow_percent,
        "deadline": durations.render(gate.deadline),
        "detect": detect_json(gate.detect),
        **({} if gate.comparison is None else {"comparison": terms_json(gate.comparison)}),
        **{name: value for name, value in asked.items() if value is not None},
    }
