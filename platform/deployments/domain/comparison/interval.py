"""Confidence sequence: anytime-valid bounds for the mean of values from 0 to 1. Pure.

The analysis looks every two seconds and may stop at any look, which an ordinary interval does not allow. These bounds
come from Robbins' method of mixtures: for the true mean p of values with the sum s, n of them, the ratio

    M(p) = B(s + 1/2, n - s + 1/2) / B(1/2, 1/2)  /  (p^s (1 - p)^(n - s))

has a mean of at most 1 at any time, so by Ville's inequality it ever reaches 1/alpha with a probability of at most
alpha; the p with M(p) < 1/alpha are a confidence sequence (H. Robbins, "Statistical methods related to the law of the
iterated logarithm", 1970; S. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, "Time-uniform, nonparametric, nonasymptotic
confidence sequences", 2021). It holds for shares as for yes and no: for x in [0, 1] the weighted mean of arithmetic and
geometry gives (q/p)^x ((1-q)/(1-p))^(1-x) <= x q/p + (1-x) (1-q)/(1-p), whose expectation is 1 where p is x's mean.
"""

import math

_BISECTIONS = 48


def bounds(total: float, count: float, alpha: float) -> tuple[float, float]:
    """Return bounds of the true mean, valid at all looks together with a probability of at least 1 - alpha.

    Args:
        total: the sum of the values, 0 to `count`.
        count: their number; fewer than observed where some are not independent of each other.
    """
    if not count:
        return 0.0, 1.0
    return _lower(total, count, alpha / 2), 1.0 - _lower(count - total, count, alpha / 2)


def strength(total: float, count: int, limit: float, alpha: float) -> float:
    """Return the strength of the evidence that the true mean is not `limit`; from 1 on `bounds` exclude it."""
    return max(0.0, _log_mixture(total, count, limit) / -math.log(alpha / 2))


def _lower(total: float, count: float, alpha: float) -> float:
    if total <= 0:
        return 0.0
    outside, inside = 0.0, min(1.0, total / count)
    for _ in range(_BISECTIONS):
        middle = (outside + inside) / 2
        if _log_mixture(total, count, middle) >= -math.log(alpha):
            outside = middle
        else:
            inside = middle
    return outside


def _log_mixture(total: float, count: float, p: float) -> float:
    """Return log M(p); infinite where p makes the observations impossible."""
    rest = max(0.0, count - total)
    if (p <= 0 and total) or (p >= 1 and rest):
        return math.inf
    log_beta = math.lgamma(total + 0.5) + math.lgamma(rest + 0.5) - math.lgamma(count + 1) - math.log(math.pi)
    log_likelihood = (total * math.log(p) if total else 0.0) + (rest * math.log1p(-p) if rest else 0.0)
    return log_beta - log_likelihood
