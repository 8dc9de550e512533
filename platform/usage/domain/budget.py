"""Budgets: a team's limits of a month, and the shares of them that notice is given of. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

PERCENTS = (80, 100)
"""Shares of a budget that notice is given of."""
MOST_REQUESTS = 10**15
MOST_COST = 1e12


@dataclass(frozen=True, slots=True)
class Limits:
    """A month's limits; None is no limit. `cost` is in the currency of the prices."""

    requests: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Crossing:
    """A share of a limit that was used.

    Attributes:
        measure: `requests` or `cost`.
    """

    measure: str
    percent: int
    used: float
    limit: float


def crossed(limits: Limits, *, requests: int, cost: float | None) -> Iterator[Crossing]:
    """Yield the shares in PERCENTS that are used; a cost that is not known is not compared."""
    for measure, used, limit in (("requests", requests, limits.requests), ("cost", cost, limits.cost)):
        if limit is None or used is None:
            continue
        for percent in PERCENTS:
            if used * 100 >= limit * percent and used:
                yield Crossing(measure, percent, used, limit)
