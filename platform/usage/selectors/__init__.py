"""Usage as other rooms read it, and as a caller may see it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet, Subquery, Sum

from accounts.domain.roles import DEFAULT_TEAM, Role
from accounts.models import ApiToken
from usage.models import HourlyUsage, LogReading


@dataclass(frozen=True, slots=True)
class Used:
    """Requests of one key at one service; texts are empty for callers without a key.

    Attributes:
        service: `<namespace>/<name>`.
        rows: one a request; the gateway does not know how many rows a request has.
    """

    team: str
    key: str
    service: str
    requests: int
    rows: int


def used_between(start: datetime, end: datetime) -> Iterator[Used]:
    """Yield what was used in the hours that begin from `start` to before `end`, by team, key and service."""
    hours = HourlyUsage.objects.filter(hour__gte=start, hour__lt=end)
    for row in hours.values("team", "key", "namespace", "service").annotate(total=Sum("requests")).order_by():
        service = f"{row['namespace']}/{row['service']}"
        yield Used(row["team"], row["key"], service, row["total"], row["total"])


def last_use_of(token_ids: QuerySet[Any]) -> Subquery:
    """Return the expression for when one of these tokens, a query of ids, was last used; null where none was."""
    used = HourlyUsage.objects.filter(token_id__in=token_ids).order_by("-last_at")
    return Subquery(used.values("last_at")[:1])


def last_read() -> LogReading | None:
    """Return what was read of the access log and when; None before the first reading."""
    return LogReading.objects.first()


def usage_query(*, token: ApiToken) -> QuerySet[HourlyUsage]:
    """Return the usage of the keys of the caller's teams; administrators of the installation see all."""
    if token.roles.get(DEFAULT_TEAM) is Role.ADMIN:
        return HourlyUsage.objects.all()
    return HourlyUsage.objects.filter(team__in=list(token.roles))


def sees_all(token: ApiToken) -> bool:
    """Return whether the caller sees the usage of every team, and of callers without a key."""
    return token.roles.get(DEFAULT_TEAM) is Role.ADMIN
