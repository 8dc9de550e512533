"""Cost per thousand inferences, from hourly prices that administrators set. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PER = 1000
REPLICA = "replica"
"""Key of a replica without a GPU among the prices."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Hourly prices on a cluster.

    Attributes:
        per_hour: of a replica by its extended resource, such as `nvidia.com/mig-1g.10gb`, or `replica` for none.
    """

    currency: str = ""
    per_hour: Mapping[str, float] | None = None

    def of(self, resource: str) -> float | None:
        """Return the hourly price of a replica with `resource` (empty for none); None where it is not set."""
        return (self.per_hour or {}).get(resource or REPLICA)


@dataclass(frozen=True, slots=True)
class Used:
    """Use of replicas of one kind: `resource` is the GPU or slice that each has, empty for none."""

    resource: str
    replica_seconds: float
    requests: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost per thousand inferences.

    Attributes:
        per_thousand: in `currency`; None where it is not known.
        why: its sources, or why it is not known, in a sentence.
        unpriced: resources without a price.
    """

    per_thousand: float | None
    currency: str
    why: str
    unpriced: tuple[str, ...] = ()


def saved_by(hours: float, resource: str, prices: Prices) -> float | None:
    """Return what replicas with `resource` would have cost in hours that none ran; None without their price."""
    price = prices.of(resource)
    return None if price is None else hours * price


def cost_of(used: Iterable[Used], prices: Prices, over: str) -> Cost:
    """Return the cost of the use `over` a time, such as `the last hour`.

    A request is one inference, whatever its batch size. An idle replica costs as much as a busy one.
    """
    hours: dict[str, float] = {}
    requests = 0
    for each in used:
        hours[each.resource] = hours.get(each.resource, 0.0) + each.replica_seconds / 3600
        requests += each.requests
    unpriced = tuple(sorted({resource or REPLICA for resource in hours if prices.of(resource) is None}))
    if not any(hours.values()):
        return Cost(None, prices.currency, f"no replica was seen in {over}")
    if unpriced:
        what = " and ".join(unpriced)
        return Cost(None, prices.currency, f"no hourly price is set for {what} on this cluster", unpriced)
    if not requests:
        return Cost(None, prices.currency, f"no request came in {over}")
    total = sum((prices.of(resource) or 0.0) * spent for resource, spent in hours.items())
    parts = ", ".join(
        f"{spent:.3g} h of {resource or REPLICA} at {prices.of(resource):g} {prices.currency}"
        for resource, spent in sorted(hours.items())
    )
    return Cost(PER * total / requests, prices.currency, f"{over}: {parts}, for {requests:,} requests")
