"""Latency of the canary: the share of requests slower than an edge fixed from stable. Pure."""

from dataclasses import dataclass

import numpy as np

from deployments.domain.analysis.criterion import PERCENT, Share, Stakes, Window, decided
from deployments.domain.analysis.evidence.blocks import LEAST_CANARY, Block
from deployments.domain.analysis.evidence.eprocess import (
    LEAST_FACTOR,
    Floats,
    Shares,
    limit_factors,
    may_clip,
    unexcused,
)
from deployments.domain.analysis.verdict import Measurement, Verdict

_CLIPS = np.array([1.0, 1.0, 0.5])
_STAKES = np.array([0.4, 1.0, 1.0])  # of the largest possible


@dataclass(frozen=True, slots=True)
class SlowRequests:
    """Requests slower than the edge among the canary's, in percent.

    The canary is within its limit while its share is at most `limit_percent`, or at most stable's of the same time plus
    the headroom, which is the limit less what the quantile leaves; where everything became slower, as much slower is
    allowed. Two families of bettors bet against that, and each factor has a mean of at most 1 while it holds:

    - the share against the limit, with blocks in which stable is slow too (more than the nominal share and half the
      headroom) no evidence (`eprocess.unexcused`). Fast where stable is as fast as it was.
    - the share against the larger of the limit and stable's plus headroom. Stable's share is inside a convex function
      there, so its scatter makes the bar higher on average, never lower (Jensen); clipping is explained at
      `eprocess.increase_factors`. Slower, but it works where stable is slow too.
    """

    limit_percent: float
    quantile: float
    min_requests: int
    metric: str = "slow_requests"

    @property
    def headroom_percent(self) -> float:
        """Return by how much stable's share may be exceeded."""
        return self.limit_percent - 100 * (1 - self.quantile)

    def stakes(self, block: Block) -> Stakes | None:
        """Return the stakes of the block; None where too few latencies are known."""
        canary, stable = Share(block.canary.slow, block.canary.timed), Share(block.stable.slow, block.stable.timed)
        if canary.total < LEAST_CANARY:
            return None
        return Stakes.of(self.factors(canary.shares, stable.shares))

    def factors(self, canary: Shares, stable: Shares) -> tuple[Floats, Floats]:
        """Return the factors [..., 7] of both families and the values [...] of blocks [...] with these shares."""
        limit, headroom = self.limit_percent / 100, self.headroom_percent / 100
        has_stable = stable.requests >= LEAST_CANARY  # none at weight 100: the limit alone decides
        calm = unexcused(canary, stable, limit - headroom / 2, 1.5 * limit)
        absolute = limit_factors(np.where(has_stable, calm, canary.seen), limit)
        bar = np.maximum(limit, np.minimum(stable.seen[..., None], _CLIPS) + headroom)
        highest = np.maximum(limit, _CLIPS + headroom)
        excess = np.minimum(canary.seen[..., None], _CLIPS) - bar
        relative = 1 + _STAKES * (1 - LEAST_FACTOR) / highest * excess
        is_staked = has_stable[..., None] & (may_clip(canary, stable)[..., None] | (_CLIPS >= 1))
        factors = np.concatenate([absolute, np.where(is_staked, relative, 1.0)], axis=-1)
        return factors, canary.seen - stable.seen

    def counted(self, window: Window) -> Share | None:
        """Return the canary's slow requests; None while the edge is not fixed."""
        edge, latency = window.edge_us, window.canary.latency
        return None if edge is None else Share(latency.slower_than(edge), latency.total)

    def judge(self, window: Window, *, is_clear: bool) -> Measurement:
        """Return the measurement; Running while the edge is not fixed."""
        edge, limit = window.edge_us, self.limit_percent
        if edge is None:
            answered = "1 request" if window.stable_answered == 1 else f"{window.stable_answered} requests"
            message = (
                f"stable's replicas have answered {answered}; "
                f"{self.min_requests} are needed to fix from them what is slow"
            )
            return Measurement(self.metric, PERCENT, None, None, limit, Verdict.RUNNING, message)
        canary = Share(window.canary.latency.slower_than(edge), window.canary.latency.total)
        stable = Share(window.stable.latency.slower_than(edge), window.stable.latency.total)
        allowed = min(100.0, max(limit, stable.percent + self.headroom_percent))
        verdict, outlook, more = decided(canary, allowed, self.min_requests, is_clear=is_clear)
        message = (
            f"{canary} requests of the canary took longer than {_duration(edge)} ({canary.percent:.1f} %, limit "
            f"{allowed:.3g} %), {stable} of stable ({stable.percent:.1f} %){outlook}"
        )
        limit_shown = round(allowed, 6)
        return Measurement(self.metric, PERCENT, canary.shown, stable.shown, limit_shown, verdict, message, more)


def _duration(edge_us: float) -> str:
    return f"{edge_us / 1000:g} ms" if edge_us >= 1000 else f"{edge_us:g} µs"
