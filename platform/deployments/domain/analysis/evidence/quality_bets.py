"""Bets on the mean losses of labelled answers, block by block. Pure numpy.

The value of a block is the canary's mean loss minus stable's, in -1..1, and it bets against "its mean is at most
`margin`" in one of two ways, each with `INCREASE_BETTORS` factors:

- *Right or wrong.* Where every loss is 0 or 1, the means are shares of wrong answers and `increase_factors` holds: the
  number of wrong answers has a distribution that its mean fixes, so of equal shares the one of fewer labels is spread
  more widely, and clipping cannot make the canary look worse.
- *Graded.* Means of other losses are no such shares: with equal means the canary's may be close together and stable's
  far apart, and clipping both at u would raise the difference by up to the mean of (S - u)+, S being stable's mean
  loss in the block. Whatever its distribution, that is at most v/(4 (u - m)) where S has the mean m and a variance of
  at most v (H. Scarf, "A min-max solution of an inventory problem", 1958). So that much is added to the margin. m and v
  come from stable's labels before the block; v is `_ALIKE` times what independent labels have, for labels that share
  their fate. Without enough of them only the differences that are not clipped are bet on, which need no assumption.

Pairs (both sides answered the same requests) are bet on in the same ways: a difference of means is a mean of
differences, whose chance is smaller as far as both sides are wrong on the same requests.
"""

import numpy as np
import numpy.typing as npt

from deployments.domain.analysis.evidence.eprocess import (
    INCREASE_BETTORS,
    Booleans,
    Floats,
    Shares,
    increase_factors,
    may_clip,
)

KNOWN = 100
"""Labels of stable from which on its mean and variance are known well enough to clip graded losses."""

_ALIKE = 4.0
_LEAST_MARGIN = 0.002
_REACHES = np.array([np.inf, np.inf, 30.0, 30.0, 10.0, 10.0, 3.0])  # of clips above stable's mean, in margins
_STAKES = np.array([0.3, 0.9, 0.4, 0.9, 0.4, 0.9, 0.7])  # of the largest possible
assert len(_REACHES) == len(_STAKES) == INCREASE_BETTORS  # noqa: S101 - one capital has bets of both kinds


def quality_factors(
    canary: Shares,
    stable: Shares,
    margin: float,
    *,
    is_graded: npt.ArrayLike,
    known: npt.ArrayLike,
    mean: npt.ArrayLike,
    variance: npt.ArrayLike,
) -> tuple[Floats, Floats]:
    """Return the factors [..., 7] and the values [...] of blocks with these mean losses of so many labels.

    Args:
        is_graded: [...] whether losses other than 0 and 1 are known of, before the block.
        known, mean, variance: [...] stable's labels before the block: how many, and of a loss of theirs.
    """
    binary: Booleans = ~np.asarray(is_graded) & may_clip(canary, stable)
    factors = np.where(
        binary[..., None],
        increase_factors(canary, stable, margin),
        graded_factors(canary, stable, margin, known=known, mean=mean, variance=variance),
    )
    return factors, np.asarray(canary.seen - stable.seen)


def graded_factors(
    canary: Shares, stable: Shares, margin: float, *, known: npt.ArrayLike, mean: npt.ArrayLike, variance: npt.ArrayLike
) -> Floats:
    """Return [..., 7] factors for losses of any kind."""
    wide = max(margin, _LEAST_MARGIN)
    spread = (_ALIKE * np.asarray(variance) / np.maximum(stable.requests, 1.0))[..., None]
    middle = np.asarray(mean)[..., None]
    clips = np.where(
        (np.asarray(known) >= KNOWN)[..., None],
        np.minimum(middle + np.maximum(spread / wide, _REACHES * wide), 1.0),
        1.0,
    )
    excess = np.where(clips < 1, spread / (4 * np.maximum(clips - middle, 1e-9)), 0.0)
    difference = np.minimum(canary.seen[..., None], clips) - np.minimum(stable.seen[..., None], clips)
    allowed = margin + excess
    return np.asarray(1 + _STAKES / (clips + allowed) * (difference - allowed))
