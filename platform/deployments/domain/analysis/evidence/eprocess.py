"""E-process: anytime-valid evidence by betting against "the canary is within its limit". Pure numpy.

Every measurement has an e-process. It begins with a capital of 1, and a bettor stakes part of it on each block of
time (`blocks`): the block's value x has, as long as the canary is within its limit, a mean of at most 0 given all
that came before, so the factor 1 + l x (l small enough that it stays positive) has a mean of at most 1. The capital
is a nonnegative supermartingale then, and by Ville's inequality it ever reaches 1/alpha with a probability of at most
alpha, in the whole rollout and whenever one looks (J. Ville, "Etude critique de la notion de collectif", 1939;
I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86, 2024). Several
measurements share alpha evenly (union bound).

*Which l.* Not known beforehand, so the capital starts evenly spread over a grid of bettors and cash, and after each
block a small part of it is spread again. Both are plays with one's own money: the sum stays a supermartingale. The
second keeps bold bettors solvent through a long good time, so that a canary that breaks late is seen soon (M. Herbster,
M. Warmuth, "Tracking the best expert", 1998).

*Runs of bad blocks.* A pause of one replica that lasts for several blocks makes the values of these blocks depend on
each other, and "given all that came before" is not true any more. Therefore each factor counts to the power 1/tau, tau
being how many blocks such a run is measured to last. If blocks tau apart do not know of each other, the capital is the
geometric mean of tau interleaved supermartingales; each of them reaches x with a probability of at most 1/x, and their
geometric mean reaches e/alpha with a probability of at most alpha (V. Vovk, R. Wang, "Combining p-values via
averaging", Biometrika 107, 2020). Hence the one nat in `threshold`. tau = (1 + r)/(1 - r) comes from the lag-1
correlation r of the values seen before the block (as in an autoregression), shrunk to a small prior. Where no theorem
covers this estimate, simulations check it (tests/deployments/analysis, benchmarks/analysis.py).

All functions work on the last axis, so that thousands of rollouts are simulated by the code that judges one:
shapes are [..., bettors] for factors and [...] for values, with [...] empty for one measurement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool]

LEAST_FACTOR = 0.08
"""A block never takes more than all but this part of a bettor's capital."""

MOST_FACTOR = 9.0
"""Upper bound of a block's factor for a share against its limit, so that failing a canary takes five blocks, ten
seconds. A factor that is cut has a smaller mean; so bold bettors may stay, who reach it with a third of the requests
bad.
"""

_SPREAD = 0.01  # part of the capital that is redistributed over all bettors after each block
_PRIOR_BLOCKS, _PRIOR_CORRELATION = 5.0, 0.1
_LONGEST_RUN = 4.0  # blocks; with more, a canary that breaks late would pass for a pause


@dataclass(frozen=True, slots=True, eq=False)
class Wealth:
    """The capital of one e-process, and statistics of its values so far.

    Attributes:
        logs: [..., bettors + 1] logarithm of each bettor's capital; the last one is cash.
        moments: [..., 6] of the values: how many, sum, sum of squares, sum of products of neighbours, first, last.
    """

    logs: Floats
    moments: Floats


def fresh(bettors: int, shape: tuple[int, ...] = ()) -> Wealth:
    """Return a capital of 1, evenly spread."""
    return Wealth(np.full((*shape, bettors + 1), -np.log(bettors + 1)), np.zeros((*shape, 6)))


def bet(wealth: Wealth, factors: npt.ArrayLike, value: npt.ArrayLike, taken: npt.ArrayLike = True) -> Wealth:
    """Return the capital after one block.

    Args:
        factors: [..., bettors] above 0, each with a mean of at most 1 while the canary is within its limit.
        value: [...] what the factors are computed from; estimates how long runs last.
        taken: [...] False stakes nothing on this block.
    """
    gains = np.log(np.maximum(factors, LEAST_FACTOR)) / run_blocks(wealth)[..., None]
    logs = wealth.logs + np.concatenate([gains, np.zeros((*gains.shape[:-1], 1))], axis=-1)
    capital = np.logaddexp.reduce(logs, axis=-1)[..., None]
    logs = np.logaddexp(logs + np.log1p(-_SPREAD), capital + np.log(_SPREAD / logs.shape[-1]))
    is_taken = np.asarray(taken)[..., None]
    moments = _with(wealth.moments, np.asarray(value, dtype=float))
    return Wealth(np.where(is_taken, logs, wealth.logs), np.where(is_taken, moments, wealth.moments))


def log_capital(wealth: Wealth) -> Floats:
    """Return [...] the logarithm of the whole capital, for comparison with `threshold`."""
    return np.asarray(np.logaddexp.reduce(wealth.logs, axis=-1))


def expected_growth(factors: Floats) -> float:
    """Return by how much the best bettor's log capital grows per block on average over blocks [blocks, bettors].

    Blocks are assumed independent of each other; the redistributed part is a loss to the best one.
    """
    gains = np.log(np.maximum(factors, LEAST_FACTOR)).mean(axis=0)
    tau = float(run_blocks(fresh(factors.shape[-1])))
    return float(gains.max()) / tau - _SPREAD


def threshold(alpha: float, measurements: int) -> float:
    """Return the logarithm of the capital that proves a broken limit, for this many measurements that share alpha."""
    return float(np.log(max(1, measurements) / alpha) + 1.0)


def run_blocks(wealth: Wealth) -> Floats:
    """Return [...] tau: how many blocks of a run of equal ones count as one, 1 or more."""
    count, total, squares, products, first, last = np.moveaxis(wealth.moments, -1, 0)
    mean = total / np.maximum(count, 1)
    variance = squares - count * mean**2
    covariance = products - mean * (2 * total - first - last) + (count - 1) * mean**2
    seen = np.where(variance > 1e-12, covariance / np.maximum(variance, 1e-12), 0.0).clip(0.0, 0.95)
    correlation = (count * seen + _PRIOR_BLOCKS * _PRIOR_CORRELATION) / (count + _PRIOR_BLOCKS)
    return np.asarray(np.minimum((1 + correlation) / (1 - correlation), _LONGEST_RUN))


def limit_factors(share: npt.ArrayLike, limit: float) -> Floats:
    """Return [..., 4] factors against "the mean of the canary's share is at most `limit`"; both 0..1."""
    stakes = np.minimum(_LIMIT_STAKES, (1 - LEAST_FACTOR) / limit if limit > 0 else np.inf)
    return np.asarray(np.minimum(1 + stakes * (np.asarray(share)[..., None] - limit), MOST_FACTOR))


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Parts of the requests of blocks, [...] each: `seen`, 0..1, of so many `requests`."""

    seen: Floats
    requests: Floats


def increase_factors(canary: Shares, stable: Shares, margin: float) -> Floats:
    """Return [..., 7] factors against "the canary's share has a mean at most `margin` above stable's"; all 0..1.

    Both shares are clipped at some u, which bounds the difference and so allows a stake of up to 1/(u + margin).
    Clipping keeps the mean of the difference under the margin where the canary's block has at most as many requests
    as stable's: a share of fewer requests is spread more widely around the same mean, min(., u) is concave, so by
    Jensen's inequality the canary's clipped share has the smaller mean; and as min(., u) never grows faster than its
    argument, what the canary is worse by is not enlarged. (It takes the replicas for equally uneven: where stable's
    replicas are fewer and much more bursty than the canary's, clipped shares could mislead.) Elsewhere nothing is
    staked on clipped shares.
    """
    difference = np.minimum(canary.seen[..., None], _CLIPS) - np.minimum(stable.seen[..., None], _CLIPS)
    factors = 1 + _INCREASE_STAKES / (_CLIPS + margin) * (difference - margin)
    return np.where(may_clip(canary, stable)[..., None] | (_CLIPS >= 1), factors, 1.0)


def may_clip(canary: Shares, stable: Shares) -> Booleans:
    """Return [...] whether clipping both shares cannot make the canary look worse (`increase_factors`)."""
    return np.asarray(canary.requests <= stable.requests)


def unexcused(canary: Shares, stable: Shares, calm: float, trust: float) -> Floats:
    """Return [...] the canary's share as far as nothing that both depend on explains it.

    A block in which stable's share is above `calm` counts as one without bad requests: a smaller share adds no
    evidence that is not there. Of few requests stable's share is calm by chance at times, so the canary's counts for
    a part only that grows with their number, whole from 1/`trust` on. (Where both have the share p and `calm` is less
    than one of n requests, the mean is at most p (1 - p)^n < 1/(e n).)
    """
    weight = np.minimum(1.0, trust * stable.requests)
    return np.asarray(np.where(stable.seen > calm, 0.0, weight * canary.seen))


def wealth_json(wealth: Wealth) -> dict[str, list[float]]:
    """Return one measurement's capital as JSON."""
    return {"logs": wealth.logs.tolist(), "moments": wealth.moments.tolist()}


def stored_wealth(value: Mapping[str, Any]) -> Wealth:
    """Return the capital from the JSON of `wealth_json`."""
    return Wealth(_floats(value["logs"]), _floats(value["moments"]))


LIMIT_BETTORS, INCREASE_BETTORS = 4, 7
_LIMIT_STAKES = np.array([1.0, 3.0, 10.0, 30.0])
_CLIPS = np.array([1.0, 1.0, 0.3, 0.3, 0.1, 0.1, 0.03])
_INCREASE_STAKES = np.array([0.3, 0.9, 0.4, 0.9, 0.4, 0.9, 0.7])  # of the largest possible


def _with(moments: Floats, value: Floats) -> Floats:
    count, total, squares, products, first, last = np.moveaxis(moments, -1, 0)
    new = count == 0
    fields = (count + 1, total + value, squares + value**2, products + np.where(new, 0.0, value * last))
    return np.stack([*fields, np.where(new, value, first), value], axis=-1)


def _floats(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=float)
