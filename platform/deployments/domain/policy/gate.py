"""Analysis gate in the policy file: the limits of a step's canary. Pure."""

from dataclasses import dataclass, field
from datetime import timedelta

from common import durations
from common.files.document import Document
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.policy.comparison import parse_terms, terms_json
from deployments.domain.policy.detect import Detect, check_detect, detect_json, parse_detect
from deployments.domain.policy.metrics import Metric, metrics_json, parse_metrics
from deployments.domain.policy.quality import Quality, parse_quality, quality_json

LONGEST_MS = 10_000.0
"""Upper end of the runtime's histograms; they do not resolve longer latencies."""

_NO_DEADLINE = (
    "is there, but the analysis in the background goes on as long as the rollout; say deadline beside it for the whole "
    "rollout, or in the analysis of a step"
)


@dataclass(frozen=True, slots=True)
class SlowLimit:
    """How many percent of the requests may take longer than `milliseconds`."""

    milliseconds: float
    percent: float


@dataclass(frozen=True, slots=True)
class Gate:
    """The limits of a step's canary.

    Attributes:
        min_requests: the least finished requests of the canary for a verdict of Successful.
        max_error_percent: server errors among the canary's requests, as clients received them.
        max_error_increase_percent: percentage points by which the canary's errors (server's and, apart, client's) may
            exceed stable's of the same window; None leaves them uncompared.
        latency_quantile: fixes the edge "slow" from stable: so many of stable's requests were faster.
        max_slow_percent: how many of the canary's requests may be slower than that edge; None leaves latency ungated.
        max_slower_than: how many of the canary's requests may take longer than a named time; None for no limit.
        min_throughput_percent: the canary's least rows per second of execution, in percent of stable's; None leaves
            throughput ungated.
        metrics: further queries to Prometheus.
        quality: how much worse the canary's answers may be by the labels that come for them; None leaves that out.
        detect: no effect on verdicts; the forecast computes how many requests it takes to find this.
        deadline: from the first request the canary gets; undecided by then is Inconclusive.
        comparison: the terms for answers to copies; None leaves answers uncompared.
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
    quality: Quality | None = None

    @property
    def quality_deadline(self) -> timedelta:
        """Return the deadline that counts while only quality is undecided."""
        own = None if self.quality is None else self.quality.deadline
        return self.deadline if own is None else own


def parse_gate(document: Document) -> Gate:
    """Return the gate of a step's `analysis`; raise InvalidInput with the name of the field at fault."""
    max_error_percent = document.number("maxErrorPercent", minimum=0, maximum=100, default=1.0)
    max_slow_percent = document.optional_number("maxSlowPercent", minimum=0, maximum=100, default=15.0)
    deadline = document.duration("deadline", default=timedelta(minutes=5), positive=True)
    detect, quality = document.or_empty("detect"), document.part("quality", parse_quality)
    gate = Gate(
        min_requests=document.integer("minRequests", minimum=1, maximum=100_000_000, default=100),
        max_error_percent=max_error_percent,
        max_error_increase_percent=document.optional_number(
            "maxErrorIncreasePercent", minimum=0, maximum=100, default=1.0
        ),
        latency_quantile=document.number("latencyQuantile", minimum=0.5, maximum=0.9999, default=0.95),
        max_slow_percent=max_slow_percent,
        deadline=deadline,
        comparison=document.part("comparison", parse_terms),
        max_slower_than=document.part("maxSlowerThan", _slow_limit),
        min_throughput_percent=None
        if document.raw("minThroughputPercent", None) is None
        else document.number("minThroughputPercent", minimum=1, maximum=1000),
        metrics=parse_metrics(document, deadline),
        detect=parse_detect(detect, max_error_percent, max_slow_percent, quality),
        quality=quality,
    )
    document.refuse_unknown()
    if document.is_sound():
        check_detect(detect, gate.detect, max_error_percent, max_slow_percent, quality)
    if gate.max_slow_percent is not None and document.is_sound():
        nominal = 100 * (1 - gate.latency_quantile)
        if gate.max_slow_percent < nominal - 1e-9:
            document.fault(
                "maxSlowPercent",
                f"is {gate.max_slow_percent:g}, but {nominal:g} % of stable's own requests are slower than its "
                f"{gate.latency_quantile:g} quantile; allow at least that many",
            )
    return gate


def _slow_limit(document: Document) -> SlowLimit:
    limit = SlowLimit(
        milliseconds=document.number("ms", minimum=0.05, maximum=LONGEST_MS),
        percent=document.number("percent", minimum=0, maximum=100),
    )
    document.refuse_unknown()
    return limit


def parse_background(document: Document) -> Gate:
    """Return the gate of a whole policy's `analysis`; it has no deadline of its own."""
    if document.raw("deadline", None) is not None:
        document.fault("deadline", _NO_DEADLINE)
    gate = parse_gate(document)
    if gate.quality is not None and gate.quality.deadline is not None:
        document.fault("quality.deadline", _NO_DEADLINE)
    return gate


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
        "quality": None if gate.quality is None else quality_json(gate.quality),
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
