"""Reports of usage: sums of a month by group, with prices of replicas."""

from dataclasses import dataclass
from datetime import UTC

from django.db.models import QuerySet, Sum
from django.db.models.functions import TruncDay

from clusters.domain.pricing import Prices
from clusters.models import Cluster
from clusters.selectors import prices_of
from clusters.services.connection import LOCAL
from common.errors import InvalidInput
from usage.domain.month import Month
from usage.domain.report import COUNTS, DEFAULT_GROUPS, Line, report
from usage.models import HourlyUsage

MOST_LINES = 50_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What to report: a month, and what narrows it; empty for all.

    Attributes:
        service: `<namespace>/<name>`.
    """

    month: Month
    team: str = ""
    service: str = ""
    key: str = ""


def usage_report(rows: QuerySet[HourlyUsage], asked: Asked, by: tuple[str, ...]) -> list[Line]:
    """Return the usage of these rows by group; raises InvalidInput where it has too many lines."""
    rows = _narrowed(rows, asked)
    if "day" in by:
        rows = rows.annotate(day=TruncDay("hour", tzinfo=UTC))
    names = {"accelerator", *({"namespace"} if "service" in by else ()), *by}
    sums = rows.values(*sorted(names)).annotate(**{f"sum_{name}": Sum(name) for name in COUNTS}).order_by()
    found = [{**row, **{name: row[f"sum_{name}"] for name in COUNTS}} for row in sums[: MOST_LINES + 1]]
    if len(found) > MOST_LINES:
        raise InvalidInput(f"the report has more than {MOST_LINES} lines; ask for one team or service", field="by")
    return report(found, by, prices())


def busiest(rows: QuerySet[HourlyUsage], asked: Asked, most: int) -> tuple[list[Line], bool]:
    """Return the usage by `DEFAULT_GROUPS` of those with the most requests, and whether there are others."""
    names = ("team", "namespace", "service", "key")
    groups = _narrowed(rows, asked).values(*names).annotate(sum_requests=Sum("requests"))
    found = list(groups.order_by("-sum_requests", *names)[: most + 1])
    places: dict[tuple[str, ...], int] = {
        (each["team"], f"{each['namespace']}/{each['service']}", each["key"]): place
        for place, each in enumerate(found[:most])
    }
    near = rows.filter(**{f"{name}__in": {each[name] for each in found[:most]} for name in names})
    lines = [line for line in usage_report(near, asked, DEFAULT_GROUPS) if line.group in places]
    return sorted(lines, key=lambda line: places[line.group]), len(found) > most


def _narrowed(rows: QuerySet[HourlyUsage], asked: Asked) -> QuerySet[HourlyUsage]:
    rows = rows.filter(hour__gte=asked.month.start, hour__lt=asked.month.end)
    if asked.team:
        rows = rows.filter(team=asked.team)
    if asked.key:
        rows = rows.filter(key=asked.key)
    if asked.service:
        namespace, _, service = asked.service.partition("/")
        rows = rows.filter(namespace=namespace, service=service)
    return rows


def prices() -> Prices:
    """Return the prices of this machine; where no service was on it, those of the only cluster, and of several none."""
    cluster = Cluster.objects.filter(kind=LOCAL).first()
    others = list(Cluster.objects.all()[:2]) if cluster is None else []
    if len(others) == 1:
        cluster = others[0]
    return Prices() if cluster is None else prices_of(cluster)
