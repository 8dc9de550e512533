"""Whether a shadow's answers agree with stable's. Pure.

Its evidence is not bets on blocks of time but a confidence sequence over the pairs themselves (`comparison.interval`),
with this measurement's part of the policy's alpha.
"""

from dataclasses import dataclass

from deployments.analysis.blocks import Block
from deployments.analysis.question import Window
from deployments.analysis.verdict import Measurement
from deployments.comparison.agreement import METRIC, measure
from deployments.comparison.report import Report
from deployments.comparison.terms import Terms


@dataclass(frozen=True, slots=True)
class AnswersAgree:
    """The share of the answers that agree, in percent."""

    terms: Terms
    metric: str = METRIC

    def stakes(self, block: Block) -> None:
        """Return None."""

    def counted(self, window: Window) -> None:
        """Return None: its bounds are of pairs of answers."""

    def judge(self, window: Window, *, is_clear: bool) -> Measurement:  # noqa: ARG002 - the pairs say it
        """Return the measurement; while recorded answers cannot be read nothing is decided."""
        compared = window.compared
        if compared is None:
            return measure(Report(), self.terms)
        return measure(compared.report, self.terms, compared.problem, compared.alpha)
