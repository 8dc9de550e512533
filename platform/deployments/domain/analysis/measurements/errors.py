"""Error rate of the canary: against a limit, and against stable. Pure."""

import math
from dataclasses import dataclass

import numpy as np

from deployments.domain.analysis.criterion import PERCENT, POINTS, Share, Stakes, Window, decided
from deployments.domain.analysis.evidence.blocks import LEAST_CANARY, Block, Tally
from deployments.domain.analysis.evidence.eprocess import Floats, Shares, increase_factors, limit_factors, unexcused
from deployments.domain.analysis.evidence.totals import Counts
from deployments.domain.analysis.verdict import Measurement, Verdict


@dataclass(frozen=True, slots=True)
class ErrorLimit:
    """Server errors among the canary's requests, in percent.

    Attributes:
        is_compared: whether stable's errors of the same time excuse the canary's: where stable breaks the limit too,
            something else is at fault. A block in which it does is no evidence (`eprocess.unexcused`), and the step
            holds while stable's share in the step is above the limit.
    """

    limit_percent: float
    min_requests: int
    is_compared: bool
    metric: str = "server_errors"

    def stakes(self, block: Block) -> Stakes:
        """Return the block's share of server errors against the limit."""
        return Stakes.of(self.factors(_server(block.canary).shares, _server(block.stable).shares))

    def factors(self, canary: Shares, stable: Shares) -> tuple[Floats, Floats]:
        """Return the factors [..., 4] and the values [...] of blocks [...] with these shares."""
        limit, counted = self.limit_percent / 100, canary.seen
        if self.is_compared:
            counted = np.where(stable.requests > 0, unexcused(canary, stable, limit, math.e * limit), counted)
        return limit_factors(counted, limit), counted

    def counted(self, window: Window) -> Share:
        """Return the canary's server errors."""
        return _server(window.canary)

    def judge(self, window: Window, *, is_clear: bool) -> Measurement:
        """Return the measurement; clear evidence holds the step while stable breaks the limit too."""
        canary, stable = _server(window.canary), _server(window.stable)
        limit = self.limit_percent
        is_excused = self.is_compared and stable.percent > limit and canary.percent > limit
        verdict, outlook, more = decided(canary, limit, self.min_requests, is_clear=is_clear and not is_excused)
        if is_excused:
            outlook = (
                f"; so did {stable} to stable in the same time ({stable.percent:.2f} %), which points to something "
                "that both depend on, so the step holds"
            )
        message = f"{canary} requests to the canary failed ({canary.percent:.2f} %, limit {limit:g} %){outlook}"
        return Measurement(self.metric, PERCENT, canary.shown, stable.shown, limit, verdict, message, more)


@dataclass(frozen=True, slots=True)
class ErrorIncrease:
    """By how many percentage points the canary's server or client errors exceed stable's."""

    limit_points: float
    min_requests: int
    of_clients: bool = False

    @property
    def metric(self) -> str:
        """Return its name."""
        return "client_error_increase" if self.of_clients else "server_error_increase"

    def stakes(self, block: Block) -> Stakes | None:
        """Return the difference of the block's shares; None where stable has too few requests to compare with."""
        canary, stable = self._share(block.canary), self._share(block.stable)
        if stable.total < LEAST_CANARY:
            return None
        return Stakes.of(self.factors(canary.shares, stable.shares))

    def factors(self, canary: Shares, stable: Shares) -> tuple[Floats, Floats]:
        """Return the factors [..., 7] and the values [...] of blocks [...] with these shares."""
        return increase_factors(canary, stable, self.limit_points / 100), canary.seen - stable.seen

    def counted(self, window: Window) -> Share:
        """Return the canary's errors."""
        return self._share(window.canary)

    def judge(self, window: Window, *, is_clear: bool) -> Measurement:
        """Return the measurement; at weight 100 there is no stable traffic, and the absolute limits still hold."""
        canary, stable, limit = self._share(window.canary), self._share(window.stable), self.limit_points
        if stable.total == 0 and canary.total and not is_clear:
            message = "stable had no requests in this step, so there was nothing to compare the canary's errors with"
            return Measurement(self.metric, POINTS, canary.shown, None, limit, Verdict.SUCCESSFUL, message)
        what = "were refused as the client's error" if self.of_clients else "failed"
        allowed = min(100.0, stable.percent + limit)
        verdict, outlook, more = decided(canary, allowed, self.min_requests, is_clear=is_clear)
        points = "percentage point" if limit == 1 else POINTS
        message = (
            f"{canary} requests to the canary {what} ({canary.percent:.2f} %) against {stable} to stable "
            f"({stable.percent:.2f} %); the increase may be {limit:g} {points}{outlook}"
        )
        return Measurement(self.metric, POINTS, canary.shown, stable.shown, limit, verdict, message, more)

    def _share(self, counts: Counts | Tally) -> Share:
        return Share(counts.client_errors, counts.requests) if self.of_clients else _server(counts)


def _server(counts: Counts | Tally) -> Share:
    return Share(counts.server_errors, counts.requests)
