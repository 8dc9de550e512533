"""Answer agreement: whether a shadow's answers agree with stable's. Pure.

Its evidence is not bets on blocks of time but a confidence sequence over the pairs themselves (`comparison.interval`),
with this measurement's part of the policy's alpha.
"""

from dataclasses import dataclass

from deployments.domain.analysis.criterion import Window
from deployments.domain.analysis.evidence.blocks import Block
from deployments.domain.analysis.verdict import Measurement
from deployments.domain.comparison.agreement import METRIC, measure
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.comparison.report import Report


@dataclass(frozen=True, slots=True)
class AnswersAgree:
    """The share of the answers that agree, in percent."""

    terms: Terms
    metric: str = METRIC

    def stakes(self, block: Block) -> None:
        """Return None."""

    def counted(self, window: Window) -> None:
        """Return None: its bounds are for pairs of answers."""

    def judge(self, window: Window, *, is_clear: bool) -> Measurement:  # noqa: ARG002 - the pairs say it
        """Return the measurement; while recorded answers cannot be read it is undecided."""
        compared = window.compared
        if compared is None:
            return measure(Report(), self.terms)
        return measure(compared.report, self.terms, compared.problem, compared.alpha)
