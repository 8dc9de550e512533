"""E-detector of a feature's drift, and an e-process of a canary's difference from stable. Pure numpy.

*Drift over time.* A Shiryaev-Roberts e-detector (J. Shin, A. Ramdas, A. Rinaldo, "E-detectors: a nonparametric
framework for sequential change detection", NEJSDS 2, 2024): of each bettor M = (M + 1) L after each block of time,
where L has a mean of at most 1 given the past while nothing drifts. Then the mean of M at any stopping time is at most
the mean of that time, also of the average over bettors, so an alarm at M >= c has an average run length of at least c
blocks.

*Bettors.* For each event (`sketch`) one on "its share has risen" and one on "it has fallen", each by four ratios of
the odds: L = (q/p)^k ((1-q)/(1-p))^(n-k) for k of a block's n rows, p being the reference's confidence bound and a
margin away from it, which has a mean of at most 1 for all shares on the other side of p. Rows are not independent, so L
counts to the power 1/v, v being how much more than independent rows the event varied in the reference (`reference`):
for a sum of many rows, nearly normal with v times the variance, this is the likelihood ratio of the same two shares. A
block of more rows than the reference's counts as one of these. Where v is an estimate no theorem covers it; simulations
do.

*Canary against stable.* In blocks of the same time both have the same share in the null hypothesis, whatever it is. The
e-variable of two samples (R. Turner, A. Ly, P. Grunwald, "Generic E-variables for exact sequential k-sample tests that
allow for optional stopping", 2024) is the likelihood of two different shares over that of their mean; its products may
be looked at any time.

All functions work on the last axes: counts are [..., events], rows [...].
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from feedback.domain.drift.features import Floats
from feedback.domain.drift.reference import Reference

RUN_LENGTH = 525_600
"""Blocks until a false alarm of a service on average, at least: a block takes a minute or more, so that is a year."""
MARGIN = 0.01
"""A share may move this far from what the reference is sure of."""
_RATIOS = np.array([1.25, 1.6, 2.5, 6.0, 1 / 1.25, 1 / 1.6, 1 / 2.5, 1 / 6.0])
BETTORS = len(_RATIOS)
_RISES = _RATIOS > 1
_NEVER = -1e9
"""Logarithm of no capital; JSON has no infinity."""
_MOST = 1000.0


def calm(events: int, shape: tuple[int, ...] = ()) -> Floats:
    """Return the logarithms of an e-detector's capital that has seen nothing."""
    return np.full((*shape, events, BETTORS), _NEVER)


def detect(capital: Floats, counts: Floats, rows: npt.ArrayLike, reference: Reference) -> Floats:
    """Return [..., events, bettors] the logarithms of the capital after a block."""
    low, high = reference.bounds()
    null = np.where(_RISES, (high + MARGIN)[:, None], (low - MARGIN)[:, None])
    plays = (null > 0) & (null < 1)
    null = np.where(plays, null, 0.5)
    of_block = np.asarray(rows, float)[..., None, None]
    power = 1 / (reference.inflation[:, None] * np.maximum(1.0, of_block / max(1.0, reference.block_rows)))
    factors = power * _log_ratio(counts[..., None], of_block, _moved(null), null)
    return np.where(plays, np.minimum(np.logaddexp(capital, 0.0) + factors, _MOST), _NEVER)


def evidence(capital: Floats) -> Floats:
    """Return [...] the logarithm of the bettors' mean capital, for comparison with `threshold`."""
    playing = np.maximum((capital > _NEVER / 2).sum(axis=(-1, -2)), 1)
    return np.asarray(np.logaddexp.reduce(capital, axis=(-1, -2)) - np.log(playing))


def threshold(features: int, run_length: float = RUN_LENGTH) -> float:
    """Return the evidence of an alarm where a service has so many features."""
    return math.log(run_length) + math.log(max(1, features))


def moved_event(capital: Floats) -> int:
    """Return the event with the strongest evidence."""
    return int(np.argmax(capital.max(axis=-1)))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What one of two revisions answered in a block: [..., events] of `rows` [...]."""

    counts: Floats
    rows: npt.ArrayLike


def equal(events: int, shape: tuple[int, ...] = ()) -> Floats:
    """Return the logarithms of an e-process' capital that has seen nothing."""
    return np.zeros((*shape, events, BETTORS))


def compare(capital: Floats, canary: Part, stable: Part, reference: Reference) -> Floats:
    """Return [..., events, bettors] the logarithms of the capital after a block that both answered in."""
    expected = ((reference.counts + 0.5) / (reference.rows + 1.0))[:, None]
    other = _moved(expected)
    of_canary, of_stable = (np.asarray(part.rows, float)[..., None, None] for part in (canary, stable))
    both = (of_canary * other + of_stable * expected) / np.maximum(of_canary + of_stable, 1.0)
    both = np.where(of_canary + of_stable > 0, both, expected)
    factors = _log_ratio(canary.counts[..., None], of_canary, other, both)
    factors = factors + _log_ratio(stable.counts[..., None], of_stable, expected, both)
    rows = np.maximum(of_canary, of_stable) / max(1.0, reference.block_rows)
    return np.asarray(capital + factors / (reference.inflation[:, None] * np.maximum(1.0, rows)))


def difference_threshold(features: int, alpha: float = 0.05) -> float:
    """Return the mean capital's logarithm that proves a difference in one of so many features."""
    return math.log(max(1, features) / alpha)


def capital_json(capital: Floats) -> list[list[float]]:
    """Return the capital as JSON, to three digits."""
    rounded: list[list[float]] = np.round(capital, 3).tolist()
    return rounded


def stored_capital(value: list[list[float]]) -> Floats:
    """Return the capital from its JSON."""
    return np.array(value, float)


def _moved(share: Floats) -> Floats:
    odds = share / (1 - share) * _RATIOS
    return np.asarray(odds / (1 + odds))


def _log_ratio(of_bin: Floats, rows: Floats, share: Floats, null: Floats) -> Floats:
    return np.asarray(of_bin * np.log(share / null) + (rows - of_bin) * np.log((1 - share) / (1 - null)))
