"""Quality of the canary's answers by their labels: how much worse than stable's. Pure.

Its evidence are bets on blocks of requests (`label_watch`, `quality_bets`), which come in by `stakes_of`: a block
closes when its labels are due, not when its requests are over.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from common import durations
from deployments.domain.analysis.criterion import POINTS, Stakes, Window
from deployments.domain.analysis.evidence.blocks import Block
from deployments.domain.analysis.evidence.eprocess import Shares
from deployments.domain.analysis.evidence.label_watch import JOIN_S, LabelBlock, Watch
from deployments.domain.analysis.evidence.labelled import WHOLE, Habits, Losses, Sides
from deployments.domain.analysis.evidence.quality_bets import quality_factors
from deployments.domain.analysis.verdict import Measurement, Verdict
from deployments.domain.policy.quality import Quality

PREFIX = "quality:"
_LONG_S = 60.0


@dataclass(frozen=True, slots=True)
class AnswerQuality:
    """By how much the canary's mean loss exceeds stable's: of all answers, or of one value of a request parameter."""

    of: Quality
    value: str = WHOLE

    @property
    def metric(self) -> str:
        """Return its name."""
        part = f":{self.of.slices}={self.value}" if self.value else ""
        return f"{PREFIX}{self.of.scorer}{part}"

    def stakes(self, block: Block) -> None:
        """Return None."""

    def counted(self, window: Window) -> None:
        """Return None."""

    def margin(self, scale: float) -> float:
        """Return by how much the canary's mean loss may exceed stable's."""
        return min(1.0, self.of.max_worse / scale)

    def stakes_of(self, block: LabelBlock, scale: float) -> Stakes | None:
        """Return the stakes of a closed block of labelled answers; None where a side has none of this value."""
        both = block.sums.get(self.value, Sides())
        if not both.canary.labels or not both.stable.labels:
            return None
        before = block.before.get(self.value, Losses())
        return Stakes.of(
            quality_factors(
                _shares(both.canary),
                _shares(both.stable),
                self.margin(scale),
                is_graded=block.is_graded,
                known=before.labels,
                mean=before.mean,
                variance=before.variance,
            )
        )

    def judge(self, window: Window, *, is_clear: bool) -> Measurement:
        """Return the measurement; at weight 100 there is no stable traffic to compare with."""
        watch, quality = window.labels, self.of
        habits = None if watch is None else watch.habits
        if watch is None or habits is None:
            problem = "labels have not been read yet" if watch is None else watch.problem
            return self._measurement(None, Sides(), Verdict.RUNNING, problem or "labels have not been read yet")
        both, scale = watch.of(self.value), habits.scale
        verdict, outlook = self._verdict(window, watch, both, scale, is_clear=is_clear)
        where = f"where {quality.slices} is {self.value}: " if self.value else ""
        message = where + _compared_text(both, habits, quality.max_worse) + outlook
        return self._measurement(habits, both, verdict, message)

    def _verdict(
        self, window: Window, watch: Watch, both: Sides, scale: float, *, is_clear: bool
    ) -> tuple[Verdict, str]:
        worse = scale * (both.canary.mean - both.stable.mean)
        if is_clear:
            is_seen = both.canary.labels > 0 and worse > self.of.max_worse
            return Verdict.FAILED, "" if is_seen else "; with the steps before, the evidence against it is clear"
        if watch.problem:
            return Verdict.RUNNING, f"; {watch.problem}"
        missing = self.of.min_labels - watch.of().canary.labels
        if not window.stable.requests and window.canary.requests and not both.stable.labels:
            found = Verdict.SUCCESSFUL, "; stable had no requests in this step, so there is nothing to compare with"
        elif self.value and missing <= 0 and not both.canary.labels:
            found = Verdict.SUCCESSFUL, "; no such request of the canary got a label in this step"
        elif missing > 0 or not both.canary.labels or not both.stable.labels:
            found = Verdict.RUNNING, _outlook(window, watch, max(1, missing))
        elif worse <= self.of.max_worse + 1e-9:
            found = Verdict.SUCCESSFUL, ""
        else:
            found = Verdict.RUNNING, "; that is not clear yet, more labels are needed"
        return found

    def _measurement(self, habits: Habits | None, both: Sides, verdict: Verdict, message: str) -> Measurement:
        """Return the measurement; the limit of percentages is in points above stable's, else that of the number."""
        if habits is None:
            return Measurement(self.metric, "", None, None, None, verdict, message)
        canary, stable = (
            round(habits.scale * side.mean, 4) if side.labels else None for side in (both.canary, both.stable)
        )
        if habits.is_share:
            return Measurement(self.metric, POINTS, canary, stable, self.of.max_worse, verdict, message)
        limit = None if stable is None else round(stable + self.of.max_worse, 4)
        return Measurement(self.metric, habits.unit, canary, stable, limit, verdict, message)


def _shares(side: Losses) -> Shares:
    return Shares(np.array(side.mean), np.array(float(side.labels)))


def _compared_text(both: Sides, habits: Habits, limit: float) -> str:
    canary, stable, unit, scale = both.canary, both.stable, habits.unit, habits.scale
    if not canary.labels or not stable.labels:
        return f"{canary.labels:,} answers of the canary and {stable.labels:,} of stable have labels that are due"
    difference = scale * (canary.mean - stable.mean)
    if habits.is_share:
        side = "more" if difference >= 0 else "fewer"
        compared = f"{abs(difference):.1f} points {side}, limit {limit:g}"
        if not canary.is_graded and not stable.is_graded:
            return (
                f"{canary.loss:,.0f} of {canary.labels:,} answers of the canary are wrong ({100 * canary.mean:.1f} %) "
                f"against {stable.loss:,.0f} of {stable.labels:,} of stable ({100 * stable.mean:.1f} %), {compared}"
            )
        return (
            f"{100 * canary.mean:.1f} % of the rows in {canary.labels:,} answers of the canary are wrong against "
            f"{100 * stable.mean:.1f} % in {stable.labels:,} of stable, {compared}"
        )
    side = "more" if difference >= 0 else "less"
    return (
        f"the {unit} of the canary is {scale * canary.mean:.4g} over {canary.labels:,} answers against "
        f"{scale * stable.mean:.4g} over {stable.labels:,} of stable, {abs(difference):.3g} {side}, limit {limit:g}"
    )


def _outlook(window: Window, watch: Watch, missing: int) -> str:
    """Return how many labels are missing, and until when they come, as the end of a sentence."""
    habits = watch.habits
    assert habits is not None and window.at is not None  # noqa: S101, PT018 - else nothing was watched
    mature = watch.began + habits.horizon_s + JOIN_S
    seen, now = watch.of().canary.labels, window.at.timestamp()
    if not seen and now > mature + _LONG_S:
        short = "canary" if not watch.seen_canary else "stable" if not watch.seen_stable else ""
        if short:
            return (
                f"; none came for requests to {'the canary' if short == 'canary' else 'stable'} in this step, although "
                f"labels take {_duration(habits.horizon_s)}; send them (fairlead feedback send), and see where they "
                "stay (fairlead feedback show)"
            )
    so_many = f"; {missing:,} {'label' if missing == 1 else 'labels'} more"
    watched_s = watch.now.start - watch.began
    if seen and watched_s > 0:
        rate: float | None = seen / watched_s
    elif habits.per_second is not None and window.share_percent:
        rate = habits.per_second * window.share_percent / 100
    else:
        rate = None
    if not rate:
        return f"{so_many}; they count {_duration(habits.horizon_s)} after their request"
    try:
        until = datetime.fromtimestamp(max(now, mature) + missing / rate, UTC)
    except (OverflowError, ValueError):
        return f"{so_many}, at today's rate not in this century"
    return f"{so_many}, at today's rate until {_when(until, window.at.astimezone(UTC))}"


def _when(until: datetime, now: datetime) -> str:
    days = (until.date() - now.date()).days
    if days <= 1:
        return f"{until:%H:%M}{' tomorrow' if days == 1 else ''} (UTC)"
    return f"{until:%Y-%m-%d %H:%M} (UTC)"


def _duration(seconds: float) -> str:
    return durations.render(timedelta(seconds=max(1, round(seconds))))
