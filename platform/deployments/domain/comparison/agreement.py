"""Answer agreement: a comparison report judged by a policy's terms. Pure.

The agreement is the mean, over the requests, of the share of the answer's rows that agree.
"""

import math

from deployments.domain.analysis.verdict import Measurement, Verdict
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.comparison.interval import bounds, strength
from deployments.domain.comparison.report import Report

METRIC = "answer_agreement"
ALPHA = 0.001
"""Probability bound that the agreement is ever outside of its interval, where a policy has none."""

LEAST_DIFFERING = 5
"""So many requests must differ for clear evidence; two unlucky ones in a row prove nothing about a model."""


def interval_percent(report: Report, alpha: float = ALPHA) -> tuple[float, float]:
    """Return confidence bounds of the agreement, valid at all looks together with a probability of 1 - alpha."""
    low, high = bounds(report.disagreement, report.pairs, alpha)
    return 100 * (1 - high), 100 * (1 - low)


def measure(report: Report, terms: Terms, problem: str = "", alpha: float = ALPHA) -> Measurement:
    """Return the measurement of the agreement.

    Args:
        problem: why the recorded answers cannot be read now; the measurement is undecided then.
    """
    limit = terms.min_agreement_percent
    seen = report.agreement_percent
    value = None if seen is None else round(seen, 4)

    def measured(verdict: Verdict, message: str, more: int | None = None) -> Measurement:
        found = 100.0 if verdict is Verdict.FAILED else round(min(99.9, 100 * _evidence(report, limit, alpha)), 1)
        low, high = (round(each, 4) for each in interval_percent(report, alpha)) if report.pairs else (None, None)
        return Measurement(METRIC, "percent", value, None, limit, verdict, message, more, found, low, high)

    if problem:
        return measured(Verdict.RUNNING, f"the recorded answers cannot be read, so they decide nothing: {problem}")
    if seen is None:
        return measured(
            Verdict.RUNNING,
            f"no answer of the new version was compared yet; a verdict needs {terms.min_pairs}",
            terms.min_pairs,
        )
    low, high = interval_percent(report, alpha)
    message = (
        f"the new version's answers agree with stable's in {shown_percent(seen)} % of "
        f"{_requests(report.pairs)} (surely {shown_percent(low)} to {shown_percent(high)} %, limit {limit:g} %)"
    )
    if _is_clear(report, limit, high):
        return measured(Verdict.FAILED, message + _of_the_worst(report))
    if seen >= limit and report.pairs >= terms.min_pairs:
        return measured(Verdict.SUCCESSFUL, message, 0)
    more, outlook = _outlook(report, terms)
    return measured(Verdict.RUNNING, message + outlook, more)


def _is_clear(report: Report, limit: float, high: float) -> bool:
    """Return whether the agreement is certainly below the limit; any difference breaks a limit of 100 %."""
    if limit >= 100:
        return report.differing > 0
    return report.differing >= LEAST_DIFFERING and high < limit


def _evidence(report: Report, limit: float, alpha: float) -> float:
    """Return the progress of the evidence of too little agreement, 0 for none, 1 for clear."""
    if not report.pairs or report.disagreement <= (1 - limit / 100) * report.pairs:
        return 0.0
    return strength(report.disagreement, report.pairs, 1 - limit / 100, alpha)


def _outlook(report: Report, terms: Terms) -> tuple[int, str]:
    """Return how many more pairs a verdict needs, were they all to agree, and the end of the sentence about them."""
    limit = terms.min_agreement_percent / 100
    missing = max(0, terms.min_pairs - report.pairs)
    # Solves (pairs + n - disagreement) / (pairs + n) >= limit for n; a limit of 1 with a difference has failed already.
    if report.disagreement > (1 - limit) * (report.pairs + missing):
        missing = math.ceil(report.disagreement / (1 - limit) - report.pairs - 1e-9)
        return missing, f"; that is not clear yet, at least {missing} more that agree are needed"
    return missing, f"; a verdict needs {missing} more"


def _of_the_worst(report: Report) -> str:
    return f"; the worst: {report.worst[0].message}" if report.worst else ""


def shown_percent(percent: float) -> str:
    """Return a percentage to two digits, not rounded up to 100 where it is below."""
    return f"{math.floor(100 * percent) / 100:g}" if percent > 99 else f"{percent:.2f}".rstrip("0").rstrip(".")


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"
