"""Latency limit: the share of the canary's requests slower than the policy's threshold. Pure."""

from dataclasses import dataclass

from deployments.domain.analysis.criterion import PERCENT, Share, Stakes, Window, decided
from deployments.domain.analysis.evidence.blocks import LEAST_CANARY, Block
from deployments.domain.analysis.evidence.eprocess import limit_factors
from deployments.domain.analysis.verdict import Measurement, Verdict


@dataclass(frozen=True, slots=True)
class SlowerThan:
    """Requests of the canary that took longer than `threshold_us`, in percent, whatever stable does.

    The threshold counts as the next edge of the histograms above it, in favour of the canary.
    """

    threshold_us: float
    limit_percent: float
    min_requests: int
    metric: str = "slower_than"

    def stakes(self, block: Block) -> Stakes | None:
        """Return the block's share against the limit; None where too few latencies are known."""
        share = Share(block.canary.over, block.canary.answered)
        if share.total < LEAST_CANARY:
            return None
        return Stakes(limit_factors(share.fraction, self.limit_percent / 100), share.fraction)

    def counted(self, window: Window) -> Share | None:
        """Return the canary's requests over the threshold; None while no latency above it is measurable."""
        latency = window.canary.latency
        edge = latency.edge_from(self.threshold_us)
        return None if edge is None else Share(latency.slower_than(edge), latency.total)

    def judge(self, window: Window, *, is_clear: bool) -> Measurement:
        """Return the measurement over the step."""
        canary, stable = window.canary.latency, window.stable.latency
        edge = canary.edge_from(self.threshold_us)
        if edge is None:
            message = f"no latency of the canary above {_duration(self.threshold_us)} can be measured yet"
            return Measurement(self.metric, PERCENT, None, None, self.limit_percent, Verdict.RUNNING, message)
        own, other = Share(canary.slower_than(edge), canary.total), Share(stable.slower_than(edge), stable.total)
        verdict, outlook, more = decided(own, self.limit_percent, self.min_requests, is_clear=is_clear)
        rounded = (
            "" if edge == self.threshold_us else f", the histogram's next edge above {_duration(self.threshold_us)}"
        )
        message = (
            f"{own} requests of the canary took longer than {_duration(edge)}{rounded} ({own.percent:.2f} %, limit "
            f"{self.limit_percent:g} %), {other} of stable ({other.percent:.2f} %){outlook}"
        )
        return Measurement(self.metric, PERCENT, own.shown, other.shown, self.limit_percent, verdict, message, more)


def _duration(edge_us: float) -> str:
    return f"{edge_us / 1000:g} ms" if edge_us >= 1000 else f"{edge_us:g} µs"
