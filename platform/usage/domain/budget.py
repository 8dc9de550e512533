"""Budgets: a team's limits of a month, and the shares of them that notice is given of. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

PERCENTS = (80, 100)
"""Shares of a budget that notice is given of; at the last one an enforced budget refuses requests."""
MEASURES = ("requests", "rows", "cost")
MOST_REQUESTS = 10**15
LEAST_COST, MOST_COST = 0.01, 1e12


@dataclass(frozen=True, slots=True)
class Limits:
    """A month's limits; None is no limit.

    Attributes:
        cost: in the currency of the prices.
        is_enforced: whether gateways refuse the team's keys once one of them is used up: a quota.
    """

    requests: int | None = None
    cost: float | None = None
    rows: int | None = None
    is_enforced: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether they limit nothing."""
        return all(getattr(self, measure) is None for measure in MEASURES)

    def values(self) -> dict[str, float | bool | None]:
        """Return them by their names in the API."""
        return {**{measure: getattr(self, measure) for measure in MEASURES}, "enforce": self.is_enforced}


@dataclass(frozen=True, slots=True)
class Crossing:
    """A share of a limit that was used.

    Attributes:
        measure: one of `MEASURES`.
    """

    measure: str
    percent: int
    used: float
    limit: float


def crossed(limits: Limits, *, requests: int, rows: int, cost: float | None) -> Iterator[Crossing]:
    """Yield the shares in PERCENTS that are used; a cost that is not known is not compared."""
    for measure, used in zip(MEASURES, (requests, rows, cost), strict=True):
        limit = getattr(limits, measure)
        if limit is None or used is None:
            continue
        for percent in PERCENTS:
            if used * 100 >= limit * percent and used:
                yield Crossing(measure, percent, used, limit)
