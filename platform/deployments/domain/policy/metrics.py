"""Metric analysis by Prometheus queries: the `metrics` of a step's analysis. Pure."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from common import durations
from common.files.document import Document
from common.identifiers import check_dns_label
from deployments.domain.policy import promql

SHORTEST_INTERVAL = timedelta(seconds=10)
ALLOWED_PERCENT = 10.0
MOST = 10
_HALF = 50.0
_HUGE = 1e300


class Series(StrEnum):
    """Which series a query may read."""

    SERVICE = "service"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Metric:
    """A number sampled from Prometheus, and its limits.

    Either `minimum` and `maximum` bound the canary's number, or it is compared with stable's by one of the two others.

    Attributes:
        query: PromQL with placeholders (`deployments.domain.policy.promql`).
        series: those of the service (`deployments.domain.policy.series`), or all, which only an administrator can save.
        interval: between samples; the first comes one interval after the step's weight was confirmed.
        min_looks: samples with a number required for a verdict of Successful.
        allowed_percent: percent of samples that may be out of bounds. For a comparison it is 50: of two equal versions
            either is the worse one as often as not.
        max_increase_percent, max_decrease_percent: how far the canary's number may lie above or below stable's.
    """

    name: str
    query: str
    interval: timedelta = SHORTEST_INTERVAL
    min_looks: int = 3
    allowed_percent: float = ALLOWED_PERCENT
    minimum: float | None = None
    maximum: float | None = None
    max_increase_percent: float | None = None
    max_decrease_percent: float | None = None
    series: Series = Series.SERVICE

    @property
    def is_comparison(self) -> bool:
        """Return whether the canary's number is compared with stable's."""
        return self.max_increase_percent is not None or self.max_decrease_percent is not None


def parse_metrics(gate: Document, deadline: timedelta) -> tuple[Metric, ...]:
    """Return the `metrics` of a step's analysis; raise InvalidInput with the name of the field at fault."""
    if gate.raw("metrics", None) is None:
        return ()
    longest = deadline if gate.is_sound("deadline") else timedelta.max
    metrics = gate.each("metrics", lambda document: _metric(document, longest))
    names = [metric.name for metric in metrics]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice and gate.is_sound("metrics"):
        gate.fault("metrics", f"has two that are called {twice!r}; each needs a name of its own")
    if len(metrics) > MOST:
        gate.fault("metrics", f"has {len(metrics)} entries; expected at most {MOST}")
    return metrics


def _metric(document: Document, deadline: timedelta) -> Metric:
    query = document.text("query", check=promql.check_query)
    behind = promql.look_back(query)
    increase, decrease = _limit(document, "maxIncreasePercent", 0), _limit(document, "maxDecreasePercent", 0, 100)
    is_comparison = increase is not None or decrease is not None
    metric = Metric(
        name=document.text("name", check=check_dns_label),
        query=query,
        interval=document.duration("interval", default=max(SHORTEST_INTERVAL, behind), positive=True),
        min_looks=document.integer("minLooks", minimum=1, maximum=1000, default=6 if is_comparison else 3),
        allowed_percent=_HALF
        if is_comparison
        else document.number("allowedPercent", minimum=1, maximum=90, default=ALLOWED_PERCENT),
        minimum=_limit(document, "min", -_HUGE),
        maximum=_limit(document, "max", -_HUGE),
        max_increase_percent=increase,
        max_decrease_percent=decrease,
        series=document.choice("series", Series, default=Series.SERVICE),
    )
    document.refuse_unknown()
    if document.is_sound():
        _check_limits(document, metric)
        _check_interval(document, metric, behind, deadline)
    return metric


def _limit(document: Document, name: str, least: float, most: float = _HUGE) -> float | None:
    return None if document.raw(name, None) is None else document.number(name, minimum=least, maximum=most)


def _check_limits(document: Document, metric: Metric) -> None:
    bounds = metric.minimum is not None or metric.maximum is not None
    given = [bounds, metric.max_increase_percent is not None, metric.max_decrease_percent is not None]
    if sum(given) != 1:
        document.fault(
            "name",
            f"{metric.name!r} needs one kind of limit: max and min, or maxIncreasePercent, or maxDecreasePercent; "
            "for two kinds write two metrics",
        )
    if metric.minimum is not None and metric.maximum is not None and metric.minimum > metric.maximum:
        document.fault("min", f"is {metric.minimum:g}, above max, which is {metric.maximum:g}")
    if metric.is_comparison and not promql.is_per_revision(metric.query):
        document.fault(
            "query",
            "asks the same of canary and stable, so they cannot be compared; let it select by {{revision}} or "
            "{{version}}",
        )


def _check_interval(document: Document, metric: Metric, behind: timedelta, deadline: timedelta) -> None:
    if metric.interval % timedelta(seconds=1):
        document.fault("interval", f"is {durations.render(metric.interval)}; expected whole seconds")
    if metric.interval < behind:
        document.fault(
            "interval",
            f"is {durations.render(metric.interval)}, but the query looks back over {durations.render(behind)}: looks "
            "that share their data would count it more than once; make the interval as long, or write the range as "
            "[{{interval}}]",
        )
    needed = metric.min_looks * metric.interval
    if needed >= deadline:
        document.fault(
            "interval",
            f"is {durations.render(metric.interval)}, so {metric.min_looks} looks take {durations.render(needed)}, and "
            f"the deadline is {durations.render(deadline)}; make the deadline longer",
        )


def metrics_json(metrics: tuple[Metric, ...]) -> list[dict[str, object]]:
    """Return the `metrics` of a step's analysis, defaults filled in."""
    return [_json(metric) for metric in metrics]


def _json(metric: Metric) -> dict[str, object]:
    limits = {
        "min": metric.minimum,
        "max": metric.maximum,
        "maxIncreasePercent": metric.max_increase_percent,
        "maxDecreasePercent": metric.max_decrease_percent,
    }
    return {
        "name": metric.name,
        "query": metric.query,
        **({"series": str(metric.series)} if metric.series is not Series.SERVICE else {}),
        "interval": durations.render(metric.interval),
        "minLooks": metric.min_looks,
        **({} if metric.is_comparison else {"allowedPercent": metric.allowed_percent}),
        **{name: value for name, value in limits.items() if value is not None},
    }
