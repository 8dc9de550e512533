"""Throughput of a canary's replica relative to stable's, per second of execution. Pure.

It is no rate of arrivals, which the weight decides: rows inferred per second of execution, compared between batches of
like size (`batch_profile`). The distribution of execution times is unknown, so a block counts as 1 where the canary
falls short of the limit in it and as 0 where it does not; while it keeps to the limit in the median, no more than half
of the blocks do (the sign test).
"""

from dataclasses import dataclass

from deployments.domain.analysis.criterion import PERCENT, Stakes, Window
from deployments.domain.analysis.evidence.batch_profile import Batches, relative_throughput, rows_per_second
from deployments.domain.analysis.evidence.blocks import Block
from deployments.domain.analysis.evidence.eprocess import limit_factors
from deployments.domain.analysis.verdict import Measurement, Verdict

_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Throughput:
    """The canary's rows per second of execution, in percent of stable's."""

    least_percent: float
    min_requests: int
    metric: str = "throughput"

    def stakes(self, block: Block) -> Stakes | None:
        """Return whether the canary fell short in the block; None without a comparison."""
        found = relative_throughput(block.canary.batches, block.stable.batches)
        if found is None:
            return None
        falls_short = float(100 * found < self.least_percent)
        return Stakes(limit_factors(falls_short, _HALF), falls_short)

    def counted(self, window: Window) -> None:
        """Return None."""

    def judge(self, window: Window, *, is_clear: bool) -> Measurement:
        """Return the measurement; at weight 100 there is no stable traffic to compare with."""
        canary, stable, least = window.canary, window.stable, self.least_percent
        found = relative_throughput(canary.batches, stable.batches)
        if found is None:
            is_alone = canary.requests > 0 and not stable.batches and not is_clear
            verdict = Verdict.FAILED if is_clear else Verdict.SUCCESSFUL if is_alone else Verdict.RUNNING
            message = (
                "stable ran nothing in this step, so there was nothing to compare the canary's throughput with"
                if is_alone
                else "the canary and stable have run no batches of like size in this step yet"
            )
            return Measurement(self.metric, PERCENT, None, None, least, verdict, message)
        percent = round(100 * found, 2)
        verdict, outlook = self._verdict(percent, canary.requests, is_clear=is_clear)
        message = (
            f"a replica of the canary inferred {_rate(canary.batches)} rows per second of execution, one of stable "
            f"{_rate(stable.batches)}; in batches of like size the canary did {percent:.1f} % of what stable does, at "
            f"least {least:g} % are required{outlook}"
        )
        return Measurement(self.metric, PERCENT, percent, 100.0, least, verdict, message)

    def _verdict(self, percent: float, requests: int, *, is_clear: bool) -> tuple[Verdict, str]:
        if is_clear:
            return Verdict.FAILED, ""
        if requests < self.min_requests:
            return Verdict.RUNNING, f"; a verdict needs {self.min_requests} requests"
        if percent < self.least_percent:
            return Verdict.RUNNING, "; that is not clear yet, more requests are needed"
        return Verdict.SUCCESSFUL, ""


def _rate(batches: Batches) -> str:
    rate = rows_per_second(batches)
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
