"""Forecast of a gate on quality: how many labels find a stated regression, at the rate of labels observed. Pure numpy.

As for requests (`forecast`): blocks are drawn with stable's mean and variance of losses and with a canary that is worse
by what is stated, and the best bettor's mean log growth gives the expected number of blocks.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from common import durations
from deployments.domain.analysis.evidence import eprocess
from deployments.domain.analysis.evidence.blocks import LEAST_CANARY
from deployments.domain.analysis.evidence.eprocess import INCREASE_BETTORS, Floats, Shares
from deployments.domain.analysis.evidence.label_watch import JOIN_S, least
from deployments.domain.analysis.evidence.labelled import Habits, Losses
from deployments.domain.analysis.evidence.quality_bets import quality_factors
from deployments.domain.policy import Gate, Quality

_DRAWS = 4000
_TICK_S = 2.0
_MOST_BLOCKS = 10_000
_RATE_ASSUMED = 10.0


@dataclass(frozen=True, slots=True)
class LabelsNeeded:
    """What finds the regression.

    Attributes:
        labels: of the canary, on average; None where out of reach.
        seconds: from the step's begin; None where the rate of labels is unknown.
        regression_percent: by how much the mean loss is worse, in percent of the worst there is.
    """

    labels: int | None
    seconds: float | None
    regression_percent: float
    message: str


def labels_needed(gate: Gate, habits: Habits, part: float, *, is_paired: bool, threshold: float) -> LabelsNeeded:
    """Return how many labels find the gate's `detect.qualityWorse`.

    Args:
        part: of the requests, 0..1, that the canary gets, or copies.
        threshold: the capital of clear evidence.
    """
    quality = gate.quality
    assert quality is not None  # noqa: S101 - of a gate on quality
    worse = min(gate.detect.quality_worse or 3 * quality.max_worse, habits.scale)
    margin, loss = quality.max_worse / habits.scale, worse / habits.scale
    canary, stable, seconds = _sizes(habits, part, is_paired=is_paired)
    growth = _growth(habits, min(1.0, margin), loss, (canary, stable))
    found = (threshold + math.log(INCREASE_BETTORS + 1)) / growth if growth > 0 else math.inf
    points = f"{worse:g} points" if habits.is_share else f"{worse:g} in {habits.unit}"
    whom = f"a canary whose answers are worse by {points}"
    if found > _MOST_BLOCKS:
        return LabelsNeeded(
            None, None, 100 * loss, f"{whom} is not found by {quality.scorer}: that is too close to what is allowed"
        )
    whole = max(1, math.ceil(found))
    takes = None if habits.per_second is None else whole * seconds + habits.horizon_s + JOIN_S
    message = f"{whom} is failed by {quality.scorer} after about {whole * canary:,} labels of it"
    if takes is not None:
        message += f", {durations.render(timedelta(seconds=round(takes)))} at the present rate of labels"
    return LabelsNeeded(whole * canary, takes, 100 * loss, message)


def label_warnings(gate: Gate, habits: Habits, needed: LabelsNeeded | None, *, has_deadline: bool) -> Iterator[str]:
    """Yield what is missing for the gate, and that it may end before the regression is found."""
    quality = gate.quality
    assert quality is not None  # noqa: S101 - of a gate on quality
    if habits.problem:
        yield habits.problem
        return
    if not habits.stable.labels:
        yield (
            f"no label has been joined with an answer of stable yet, so a stable without wrong answers is assumed and "
            f"the time is not known; labels are waited for {durations.render(timedelta(seconds=habits.horizon_s))}"
        )
    if quality.max_worse >= habits.scale:
        yield (
            f"quality.maxWorse is {quality.max_worse:g}, and answers cannot be worse than stable's by more than "
            f"{habits.scale:g} {habits.unit}, so no canary is failed; state less"
        )
    if needed is None or needed.labels is None:
        return
    if needed.labels > quality.min_labels:
        chance = 100 * _passes(quality, habits, needed.regression_percent / 100)
        yield (
            f"quality.minLabels is {quality.min_labels}, fewer than it takes to fail such a canary; with that many, "
            f"about {chance:.2g} % of such canaries are seen within the limit and pass this step"
        )
    if has_deadline and needed.seconds is not None and needed.seconds > gate.quality_deadline.total_seconds():
        yield (
            f"the deadline for quality is {durations.render(gate.quality_deadline)}, less than that takes; make "
            "quality.deadline longer, or the step may end Inconclusive"
        )


def _sizes(habits: Habits, part: float, *, is_paired: bool) -> tuple[int, int, float]:
    """Return labels of both sides in a block, and its duration in seconds."""
    rate = habits.per_second or _RATE_ASSUMED
    rest = part if is_paired else 1 - part
    of_canary, of_stable = least(is_paired=is_paired)
    seconds = max(of_canary / (rate * part), of_stable / (rate * rest) if rest > 0 else 0.0)
    seconds = _TICK_S * max(1, math.ceil(seconds / _TICK_S - 1e-9))
    canary, stable = (round(rate * share * seconds) for share in (part, rest))
    return max(LEAST_CANARY, canary), max(of_stable, stable), seconds


def _growth(habits: Habits, margin: float, worse: float, sizes: tuple[int, int]) -> float:
    """Return by how much the best bettor's log capital grows per block of so many labels of both sides."""
    random, known = np.random.default_rng(0), habits.stable
    sides = [_drawn(random, known, more, size) for more, size in zip((worse, 0.0), sizes, strict=True)]
    factors, _ = quality_factors(
        sides[0],
        sides[1],
        margin,
        is_graded=habits.is_graded,
        known=known.labels,
        mean=known.mean,
        variance=known.variance,
    )
    return eprocess.expected_growth(factors)


def _drawn(random: np.random.Generator, known: Losses, worse: float, size: int) -> Shares:
    mean = min(1.0, known.mean + worse)
    if known.is_graded:
        seen: Floats = random.normal(mean, math.sqrt(known.variance / size), _DRAWS).clip(0.0, 1.0)
    else:
        seen = random.binomial(size, mean, _DRAWS) / size
    return Shares(seen, np.full(_DRAWS, float(size)))


def _passes(quality: Quality, habits: Habits, worse: float) -> float:
    """Return about the probability that such a canary is within the limit after `minLabels` (normal)."""
    mean = min(1.0, habits.stable.mean + worse)
    variance = habits.stable.variance if habits.stable.is_graded else mean * (1 - mean)
    spread = math.sqrt(max(variance, 1e-12) / quality.min_labels)
    return 0.5 * math.erfc((worse - quality.max_worse / habits.scale) / spread / math.sqrt(2))
