"""Samples of external metrics, one per interval. Pure.

A sample goes against the canary where its number is out of bounds, or worse than stable's by more than the limit;
`metrics` turns that into evidence. The ranges of samples do not overlap (`deployments.domain.policy.metrics` ensures
it), so each is evidence of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from deployments.domain.policy.metrics import Metric

RETRY_S = 10.0
"""Retry delay after an outage of the source; the interval where that is shorter."""


@dataclass(frozen=True, slots=True)
class Looks:
    """The samples of one metric so far in a step.

    Attributes:
        next_at: Unix seconds of the next sample.
        taken, against: samples that gave the numbers, and those of them that went against the canary.
        canary, stable: the numbers of the last sample; None where it gave none.
        problem: what is wrong with the query; empty where it is answered.
        outage: why the source was unreachable the last time; empty where it was not.
    """

    next_at: float
    taken: int = 0
    against: int = 0
    canary: float | None = None
    stable: float | None = None
    problem: str = ""
    outage: str = ""


def begin(metrics: Iterable[Metric], now: float) -> dict[str, Looks]:
    """Return empty samples; the first is due after an interval, so that it covers the step alone."""
    return {metric.name: Looks(now + metric.interval.total_seconds()) for metric in metrics}


def look(
    metric: Metric, before: Looks, *, canary: float | None, stable: float | None, problem: str, now: float
) -> Looks:
    """Return the samples with one more; one without the numbers it needs does not count."""
    next_at = now + metric.interval.total_seconds()
    after = replace(before, next_at=next_at, canary=canary, stable=stable, problem=problem, outage="")
    if canary is None or (metric.is_comparison and stable is None):
        return after
    against = before.against + _is_against(metric, canary, stable)
    return replace(after, taken=before.taken + 1, against=against)


def miss(metric: Metric, before: Looks, *, outage: str, now: float) -> Looks:
    """Return the samples after an attempt on which the source was unreachable."""
    return replace(before, next_at=now + min(RETRY_S, metric.interval.total_seconds()), outage=outage)


def bound(metric: Metric, stable: float) -> float:
    """Return the number from which on the canary's is too far from stable's; 50 % above -4 is -2."""
    margin = metric.max_increase_percent or -(metric.max_decrease_percent or 0.0)
    return stable + abs(stable) * margin / 100


def looks_json(looks: Mapping[str, Looks]) -> dict[str, Any]:
    """Return the samples as JSON, which `stored_looks` reads back to equal ones."""
    return {name: asdict(each) for name, each in looks.items()}


def stored_looks(value: Mapping[str, Any]) -> dict[str, Looks]:
    """Return the samples from the JSON of `looks_json`."""
    return {name: Looks(**fields) for name, fields in value.items()}


def _is_against(metric: Metric, canary: float, stable: float | None) -> bool:
    if stable is None or not metric.is_comparison:
        too_low = metric.minimum is not None and canary < metric.minimum
        return too_low or (metric.maximum is not None and canary > metric.maximum)
    end = bound(metric, stable)
    return canary > end if metric.max_increase_percent is not None else canary < end
