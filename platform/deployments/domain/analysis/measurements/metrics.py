"""Policy metrics: verdicts on the canary from samples of external metrics. Pure.

The distribution of external numbers is unknown, so only how often a sample goes against the canary counts. For a good
one that is at most the share that the policy allows, a tenth; in a comparison half, since of two equal versions either
is the worse one as often as not (the sign test). So each sample is a value 0 or 1 whose mean is at most the allowed
share, which is what `eprocess` bets against.
"""

from dataclasses import dataclass

from common import durations
from deployments.domain.analysis.criterion import Stakes, Window
from deployments.domain.analysis.evidence.blocks import Block
from deployments.domain.analysis.evidence.eprocess import limit_factors
from deployments.domain.analysis.evidence.external_samples import Looks, bound
from deployments.domain.analysis.verdict import Measurement, Verdict
from deployments.domain.policy.metrics import Metric


def stakes_of(metric: Metric, before: Looks | None, after: Looks) -> Stakes | None:
    """Return the stakes of the newest sample; None where none was taken or it does not count."""
    if before is None or after.taken == before.taken:
        return None
    value = float(after.against - before.against)
    return Stakes(limit_factors(value, metric.allowed_percent / 100), value)


@dataclass(frozen=True, slots=True)
class OfPrometheus:
    """The verdict on a metric's samples; their evidence comes in by `stakes_of`, per sample, not by blocks."""

    of: Metric

    @property
    def metric(self) -> str:
        """Return its name."""
        return self.of.name

    def stakes(self, block: Block) -> None:
        """Return None."""

    def counted(self, window: Window) -> None:
        """Return None."""

    def judge(self, window: Window, *, is_clear: bool) -> Measurement:
        """Return the measurement; while the source is unreachable, or has no answer, it is undecided."""
        metric, looks = self.of, window.looks.get(self.of.name, Looks(0.0))
        verdict, note = self._verdict(looks, is_clear=is_clear)
        message = "; ".join(part for part in (_evidence_text(metric, looks), note) if part)
        return Measurement(metric.name, "", looks.canary, looks.stable, _limit(metric, looks), verdict, message)

    def _verdict(self, looks: Looks, *, is_clear: bool) -> tuple[Verdict, str]:
        metric = self.of
        if looks.outage:
            return Verdict.RUNNING, f"{looks.outage}; nothing is decided until it does"
        if looks.problem:
            return Verdict.RUNNING, looks.problem
        if is_clear:
            return Verdict.FAILED, ""
        if looks.taken < metric.min_looks:
            often = f", one is taken every {durations.render(metric.interval)}"
            return Verdict.RUNNING, f"a verdict needs {metric.min_looks} looks{'' if looks.taken else often}"
        if 100 * looks.against <= metric.allowed_percent * looks.taken:
            return Verdict.SUCCESSFUL, ""
        return Verdict.RUNNING, "that is not clear yet, more looks are needed"


def _limit(metric: Metric, looks: Looks) -> float | None:
    if metric.is_comparison:
        return None if looks.stable is None else bound(metric, looks.stable)
    return metric.maximum if metric.maximum is not None else metric.minimum


def _evidence_text(metric: Metric, looks: Looks) -> str:
    count = f"in {looks.against} of {looks.taken} looks"
    if looks.canary is None or (metric.is_comparison and looks.stable is None):
        whom = "the canary" if looks.canary is None else "stable"
        before = f"; it went against the canary {count}" if looks.taken else ""
        return f"{metric.name} has no number for {whom}{before}"
    if looks.stable is None or not metric.is_comparison:
        bounds = (("below", metric.minimum), ("above", metric.maximum))
        limits = " or ".join(f"{side} {limit:g}" for side, limit in bounds if limit is not None)
        return (
            f"{metric.name} of the canary was {limits} {count}, of which {metric.allowed_percent:g} % may be; the last "
            f"was {looks.canary:.4g}"
        )
    rises = metric.max_increase_percent is not None
    margin = metric.max_increase_percent if rises else metric.max_decrease_percent
    return (
        f"{metric.name} of the canary was more than {margin:g} % {'above' if rises else 'below'} stable's {count}, of "
        f"which half may be; the last was {looks.canary:.4g} against {looks.stable:.4g}"
    )
