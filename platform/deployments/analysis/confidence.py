"""Bounds for a share (of failed, of slow requests) that stay valid however often one looks. Pure.

The analysis looks every two seconds and may stop at any look, which an ordinary interval does not allow: looked at
often enough, a good canary would fail by chance. These bounds come from Robbins' method of mixtures: for the true
share p, the ratio

    M(p) = B(bad + 1/2, good + 1/2) / B(1/2, 1/2)  /  (p^bad (1 - p)^good)

has mean 1 at any time, so by Ville's inequality it ever reaches 1/alpha with a probability of at most alpha; the
shares p with M(p) < 1/alpha are a confidence sequence (H. Robbins, "Statistical methods related to the law of the
iterated logarithm", 1970; S. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, "Time-uniform, nonparametric, nonasymptotic
confidence sequences", 2021).

It takes requests for independent; where failures come in bursts it is too sure, which tests over blocks of time will
answer. Those go into `TESTS` beside this one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

_BISECTIONS = 48


@dataclass(frozen=True, slots=True)
class Share:
    """`bad` out of `total` requests."""

    bad: int
    total: int

    @property
    def fraction(self) -> float:
        """Return the share seen, 0 without requests."""
        return self.bad / self.total if self.total else 0.0


class SharesTest(Protocol):
    """Decides whether evidence is clear; may be asked after every request."""

    def clearly_above(self, canary: Share, limit: float) -> bool:
        """Return whether the canary's true share is surely larger than `limit` (0..1)."""

    def clearly_above_stable(self, canary: Share, stable: Share, margin: float) -> bool:
        """Return whether the canary's true share is surely larger than stable's by more than `margin` (0..1)."""


@dataclass(frozen=True, slots=True)
class BetaMixture:
    """Robbins' bounds.

    Attributes:
        alpha: probability of ever calling a share clear that is not, for each question asked.
        least_bad: so many bad requests there must be; two unlucky ones in a row prove nothing about a model.
    """

    alpha: float = 0.001
    least_bad: int = 5

    def clearly_above(self, canary: Share, limit: float) -> bool:
        """Return whether the lower bound is above `limit`."""
        return canary.bad >= self.least_bad and lower_bound(canary, self.alpha) > limit

    def clearly_above_stable(self, canary: Share, stable: Share, margin: float) -> bool:
        """Return whether the canary's lower bound is above stable's upper bound by more than `margin`."""
        if canary.bad < self.least_bad or canary.fraction <= stable.fraction + margin:
            return False
        return lower_bound(canary, self.alpha / 2) - upper_bound(stable, self.alpha / 2) > margin


TESTS: Mapping[str, SharesTest] = MappingProxyType({"beta-mixture": BetaMixture()})
DEFAULT_TEST = "beta-mixture"


def lower_bound(share: Share, alpha: float) -> float:
    """Return a bound that the true share is ever below with a probability of at most `alpha`."""
    if share.bad == 0:
        return 0.0
    outside, inside = 0.0, share.fraction
    for _ in range(_BISECTIONS):
        middle = (outside + inside) / 2
        if _log_mixture(share, middle) >= -math.log(alpha):
            outside = middle
        else:
            inside = middle
    return outside


def upper_bound(share: Share, alpha: float) -> float:
    """Return a bound that the true share is ever above with a probability of at most `alpha`."""
    return 1.0 - lower_bound(Share(share.total - share.bad, share.total), alpha)


def _log_mixture(share: Share, p: float) -> float:
    """Return log M(p); infinite where p makes what was seen impossible."""
    good = share.total - share.bad
    if (p <= 0 and share.bad) or (p >= 1 and good):
        return math.inf
    log_beta = math.lgamma(share.bad + 0.5) + math.lgamma(good + 0.5) - math.lgamma(share.total + 1) - math.log(math.pi)
    log_likelihood = (share.bad * math.log(p) if share.bad else 0.0) + (good * math.log1p(-p) if good else 0.0)
    return log_beta - log_likelihood
