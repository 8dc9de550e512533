"""Budgets: limits of a month of a team, a key or a service, and the shares that notice is given of. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

PERCENTS = (80, 100)
"""Shares of a budget that notice is given of; at the last one an enforced budget refuses requests."""
MEASURES = ("requests", "rows", "cost")
MOST_REQUESTS = 10**15
LEAST_COST, MOST_COST = 0.01, 1e12


class OwnerKind(StrEnum):
    """What has a budget; also the name of what usage is grouped by for it."""

    TEAM = "team"
    KEY = "key"
    SERVICE = "service"


_REFUSED = {
    OwnerKind.TEAM: "the keys of {}",
    OwnerKind.KEY: "requests with key {}",
    OwnerKind.SERVICE: "requests to {}",
}


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose budget it is: a team's, of all its keys; a key's; or a service's, of all its callers.

    Attributes:
        name: of the team or the key; of a service `<namespace>/<name>`.
    """

    kind: OwnerKind
    name: str

    @classmethod
    def team(cls, name: str) -> "Owner":
        """Return the team as an owner."""
        return cls(OwnerKind.TEAM, name)

    @classmethod
    def key(cls, name: str) -> "Owner":
        """Return the key as an owner."""
        return cls(OwnerKind.KEY, name)

    @classmethod
    def service(cls, namespace: str, name: str) -> "Owner":
        """Return the service as an owner."""
        return cls(OwnerKind.SERVICE, f"{namespace}/{name}")

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def refused(self) -> str:
        """Return what gateways refuse once the budget is used up, if it is enforced."""
        return _REFUSED[self.kind].format(self.name)


@dataclass(frozen=True, slots=True)
class Limits:
    """A month's limits; None is no limit.

    Attributes:
        cost: in the currency of the prices.
        is_enforced: whether gateways refuse requests of the owner once one of them is used up: a quota.
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
