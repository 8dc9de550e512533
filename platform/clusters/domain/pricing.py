"""What a thousand inferences cost, from prices by the hour that administrators set. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PER = 1000
REPLICA = "replica"
"""What a replica without a GPU is called among the prices."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What an hour costs on a cluster.

    Attributes:
        per_hour: of a replica by the extended resource that it has, such as `nvidia.com/mig-1g.10gb`, or `replica`
            where it has none.
    """

    currency: str = ""
    per_hour: Mapping[str, float] | None = None

    def of(self, resource: str) -> float | None:
        """Return the price of an hour of a replica that has `resource` (empty for none); None where nobody set it."""
        return (self.per_hour or {}).get(resource or REPLICA)


@dataclass(frozen=True, slots=True)
class Used:
    """What replicas of one kind did: `resource` is the GPU or slice that each has, empty for none."""

    resource: str
    replica_seconds: float
    requests: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a thousand inferences cost.

    Attributes:
        per_thousand: in `currency`; None where that is not known.
        why: what it comes from, or why it is not known, in a sentence.
        unpriced: resources that nobody set a price for; empty for none.
    """

    per_thousand: float | None
    currency: str
    why: str
    unpriced: tuple[str, ...] = ()


def cost_of(used: Iterable[Used], prices: Prices, over: str) -> Cost:
    """Return the cost of what was used `over` a time, such as `the last hour`.

    A request is one inference, however many rows its batch has. A replica costs the same whether it is asked or not.
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
        return Cost(None, prices.currency, f"nobody set what an hour of {what} costs on this cluster", unpriced)
    if not requests:
        return Cost(None, prices.currency, f"no request came in {over}")
    total = sum((prices.of(resource) or 0.0) * spent for resource, spent in hours.items())
    parts = ", ".join(
        f"{spent:.3g} h of {resource or REPLICA} at {prices.of(resource):g} {prices.currency}"
        for resource, spent in sorted(hours.items())
    )
    return Cost(PER * total / requests, prices.currency, f"{over}: {parts}, for {requests:,} requests")
