"""Comparison summary for the API and the pages. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployments.domain.analysis.verdict import Measurement
from deployments.domain.comparison.agreement import ALPHA, interval_percent, measure
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.comparison.distribution import Distribution
from deployments.domain.comparison.report import OutputReport, Report
from deployments.domain.comparison.worst_examples import Worst


@dataclass(frozen=True, slots=True)
class Decade:
    """How many differences are from 10^`power` up to ten times as large."""

    power: int
    count: int


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of differences; quantiles are None where they have no size (NaN on one side).

    Attributes:
        zeros: rows without any difference. sizeless: rows with one that has no size.
        decades: of the others, from the least to the largest without gaps.
    """

    rows: int
    zeros: int
    sizeless: int
    p50: float | None
    p90: float | None
    p99: float | None
    largest: float
    decades: tuple[Decade, ...]


@dataclass(frozen=True, slots=True)
class OutputSummary:
    """One output.

    Attributes:
        kinds: `Equal`, `Within`, `Beyond`, ... -> in how many answers.
        absolute, relative, angle: of the rows' largest differences, and of 1 - cosine; None where nothing was measured.
        rankings, flips: best classes compared, and how many differed; `rankings_k`, `flips_k` of the k best.
    """

    name: str
    datatype: str
    kinds: Mapping[str, int]
    absolute: Spread | None
    relative: Spread | None
    angle: Spread | None
    rankings: int
    flips: int
    rankings_k: int
    flips_k: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of the comparisons.

    Attributes:
        pairs: requests whose answers were compared; `differing` of them do not agree as a whole.
        agreement_percent: mean over the requests of the share of the answer's rows that agree; None without any.
        low_percent, high_percent: anytime-valid confidence bounds of the true agreement.
        outcomes: `Agrees`, `Differs`, `ShadowFailed`, ... -> pairs.
        unreadable, strangers: pairs that were not compared, since a side could not be read (`unreadable_message` says
            why), or received another request.
        measurement: the gate's measurement.
    """

    pairs: int
    differing: int
    rows: int
    agreeing_rows: int
    agreement_percent: float | None
    low_percent: float
    high_percent: float
    outcomes: Mapping[str, int]
    outputs: Sequence[OutputSummary]
    worst: Sequence[Worst]
    unreadable: int
    unreadable_message: str
    strangers: int
    measurement: Measurement


def summary_of(report: Report, terms: Terms, *, problem: str = "", alpha: float = ALPHA) -> Summary:
    """Return the summary of a report; `problem` and `alpha` as `agreement.measure` takes them."""
    low, high = interval_percent(report, alpha)
    return Summary(
        pairs=report.pairs,
        differing=report.differing,
        rows=report.rows,
        agreeing_rows=report.agreeing_rows,
        agreement_percent=report.agreement_percent,
        low_percent=low,
        high_percent=high,
        outcomes=report.outcomes,
        outputs=[_output(name, output) for name, output in sorted(report.outputs.items())],
        worst=report.worst,
        unreadable=report.unreadable,
        unreadable_message=report.unreadable_message,
        strangers=report.strangers,
        measurement=measure(report, terms, problem, alpha),
    )


def _output(name: str, output: OutputReport) -> OutputSummary:
    spreads: dict[str, Any] = {"absolute": output.abs, "relative": output.rel, "angle": output.angle}
    return OutputSummary(
        name=name,
        datatype=output.datatype,
        kinds=output.kinds,
        rankings=output.rankings,
        flips=output.flips,
        rankings_k=output.rankings_k,
        flips_k=output.flips_k,
        **{field: _spread(values) for field, values in spreads.items()},
    )


def _spread(values: Distribution) -> Spread | None:
    if not values.total:
        return None
    return Spread(
        rows=values.total,
        zeros=values.zeros,
        sizeless=values.sizeless,
        p50=values.quantile(0.5),
        p90=values.quantile(0.9),
        p99=values.quantile(0.99),
        largest=values.largest,
        decades=tuple(Decade(power, count) for power, count in values.decades()),
    )
