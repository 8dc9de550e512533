"""Comparison report of a step so far. Pure; each tick adds its pairs, and reports can be merged."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from deployments.domain.comparison.answers import Comparison
from deployments.domain.comparison.difference import Difference
from deployments.domain.comparison.distribution import Distribution
from deployments.domain.comparison.worst_examples import Worst, keep, storable

MOST_OUTPUTS = 64
"""Limit of outputs with figures of their own; a service whose answers have ever new ones must not fill the row."""


_NONE = Distribution()


@dataclass(frozen=True, slots=True)
class OutputReport:
    """One output over all pairs; the distributions are of the rows' largest differences.

    Attributes:
        kinds: `difference.Kind` -> in how many answers.
        rankings, flips: best classes compared, and how many differed; `rankings_k`, `flips_k` of the k best.
    """

    datatype: str = ""
    kinds: Mapping[str, int] = field(default_factory=dict)
    abs: Distribution = _NONE
    rel: Distribution = _NONE
    angle: Distribution = _NONE
    rankings: int = 0
    flips: int = 0
    rankings_k: int = 0
    flips_k: int = 0

    def plus(self, difference: Difference) -> "OutputReport":
        """Return the report with one more answer's output."""
        return replace(
            self,
            datatype=self.datatype or difference.datatype,
            kinds=_sum(self.kinds, {difference.kind.value: 1}),
            abs=self.abs.plus(difference.max_abs.tolist()),
            rel=self.rel.plus(difference.max_rel.tolist()),
            angle=self.angle.plus(difference.angle.tolist()),
            rankings=self.rankings + difference.rankings,
            flips=self.flips + difference.flips,
            rankings_k=self.rankings_k + difference.rankings_k,
            flips_k=self.flips_k + difference.flips_k,
        )

    def merged(self, other: "OutputReport") -> "OutputReport":
        """Return the report of the answers of both."""
        return OutputReport(
            datatype=self.datatype or other.datatype,
            kinds=_sum(self.kinds, other.kinds),
            abs=self.abs.merged(other.abs),
            rel=self.rel.merged(other.rel),
            angle=self.angle.merged(other.angle),
            rankings=self.rankings + other.rankings,
            flips=self.flips + other.flips,
            rankings_k=self.rankings_k + other.rankings_k,
            flips_k=self.flips_k + other.flips_k,
        )


@dataclass(frozen=True, slots=True)
class Report:
    """The comparisons so far.

    Attributes:
        outcomes: `answers.Outcome` -> pairs.
        pairs: compared pairs, without those where stable had no comparable answer.
        disagreement: the sum, over the pairs, of the share of the answer that does not agree.
        differing: pairs that do not agree as a whole.
        rows, agreeing_rows: of all answers compared.
        outputs: by name.
        worst: the worst first.
        unreadable, strangers: pairs of which a side could not be read, or whose requests were not the same although
            their ids were; `unreadable_message` is the last reason.
    """

    outcomes: Mapping[str, int] = field(default_factory=dict)
    pairs: int = 0
    disagreement: float = 0.0
    differing: int = 0
    rows: int = 0
    agreeing_rows: int = 0
    outputs: Mapping[str, OutputReport] = field(default_factory=dict)
    worst: tuple[Worst, ...] = ()
    unreadable: int = 0
    strangers: int = 0
    unreadable_message: str = ""

    @property
    def agreement_percent(self) -> float | None:
        """Return how much of the answers agrees, each answer weighted equally; None without any."""
        return 100 * (1 - self.disagreement / self.pairs) if self.pairs else None


@dataclass(frozen=True, slots=True)
class Compared:
    """A step's report as input of its analysis.

    Attributes:
        alpha: the chance, at most, that the agreement is ever found outside of its interval.
        problem: why recorded answers cannot be read now; empty where they can.
    """

    report: Report
    alpha: float
    problem: str = ""


def add(report: Report, comparison: Comparison, worst: Worst | None = None) -> Report:
    """Return the report with one more pair."""
    outcomes = _sum(report.outcomes, {comparison.outcome.value: 1})
    if not comparison.outcome.is_compared:
        return replace(report, outcomes=outcomes)
    outputs = dict(report.outputs)
    for difference in comparison.differences:
        if difference.output in outputs or len(outputs) < MOST_OUTPUTS:
            outputs[difference.output] = outputs.get(difference.output, OutputReport()).plus(difference)
    return replace(
        report,
        outcomes=outcomes,
        pairs=report.pairs + 1,
        disagreement=report.disagreement + 1 - comparison.agreement,
        differing=report.differing + (comparison.agreeing_rows < comparison.rows),
        rows=report.rows + comparison.rows,
        agreeing_rows=report.agreeing_rows + comparison.agreeing_rows,
        outputs=outputs,
        worst=report.worst if worst is None else keep((*report.worst, worst)),
    )


def refuse(report: Report, unreadable: str = "") -> Report:
    """Return the report with one more pair that was not compared.

    Args:
        unreadable: why a side cannot be read; empty where the sides received different requests.
    """
    if not unreadable:
        return replace(report, strangers=report.strangers + 1)
    return replace(report, unreadable=report.unreadable + 1, unreadable_message=storable(unreadable, 300))


def merge(reports: Sequence[Report]) -> Report:
    """Return the report of all pairs of several reports."""
    whole = Report()
    for report in reports:
        names = list(dict.fromkeys((*whole.outputs, *report.outputs)))[:MOST_OUTPUTS]
        none = OutputReport()
        whole = Report(
            outcomes=_sum(whole.outcomes, report.outcomes),
            pairs=whole.pairs + report.pairs,
            disagreement=whole.disagreement + report.disagreement,
            differing=whole.differing + report.differing,
            rows=whole.rows + report.rows,
            agreeing_rows=whole.agreeing_rows + report.agreeing_rows,
            outputs={name: whole.outputs.get(name, none).merged(report.outputs.get(name, none)) for name in names},
            worst=keep((*whole.worst, *report.worst)),
            unreadable=whole.unreadable + report.unreadable,
            strangers=whole.strangers + report.strangers,
            unreadable_message=report.unreadable_message or whole.unreadable_message,
        )
    return whole


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted((Counter(one) + Counter(other)).items()))
