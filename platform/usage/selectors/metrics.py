"""Usage of the present month for the metrics page."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum

from usage.domain.month import Month
from usage.models import BudgetNotice, HourlyUsage


@dataclass(frozen=True, slots=True)
class Counted:
    """Counters of a service and the team whose keys called it; the team is empty for callers without a key."""

    namespace: str
    service: str
    team: str
    requests: int
    errors: int
    rows: int
    model_seconds: float


def usage_counters(*, now: datetime) -> Iterator[Counted]:
    """Yield the counters of the present month (UTC), which begin at 0 with it."""
    hours = HourlyUsage.objects.filter(hour__gte=Month.of(now).start).values("namespace", "service", "team")
    sums = hours.annotate(all=Sum("requests"), bad=Sum("errors"), batches=Sum("rows"), us=Sum("model_us")).order_by()
    for row in sums:
        counts = row["all"], row["bad"], row["batches"], row["us"] / 1_000_000
        yield Counted(row["namespace"], row["service"], row["team"], *counts)


def budget_percents(*, now: datetime) -> dict[tuple[str, str, str, str, str], int]:
    """Return the highest share, in percent, that notice was given of this month, by labels.

    These are team, key, namespace, service and measure, of which those of other owners are empty.
    """
    given = BudgetNotice.objects.filter(month=Month.of(now).first).order_by("percent")
    found = {}
    for team, key, service, measure, percent in given.values_list("team__name", "key", "service", "measure", "percent"):
        namespace, _, name = (service or "").partition("/")
        found[team or "", key or "", namespace, name, measure] = percent
    return found
