"""Usage as other rooms read it, and as a caller may see it."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet, Subquery

from accounts.domain.roles import DEFAULT_TEAM, Role
from accounts.models import ApiToken
from usage.models import Collector, HourlyUsage, LogReading


def last_use_of(token_ids: QuerySet[Any]) -> Subquery:
    """Return the expression for when one of these tokens, a query of ids, was last used; null where none was."""
    used = HourlyUsage.objects.filter(token_id__in=token_ids).order_by("-last_at")
    return Subquery(used.values("last_at")[:1])


def last_read() -> LogReading | None:
    """Return what was read of the access log and when; None before the first reading."""
    return LogReading.objects.first()


def last_stored() -> datetime | None:
    """Return when a collector last stored usage of services on Kubernetes; None where none did."""
    return Collector.objects.order_by("-stored_at").values_list("stored_at", flat=True).first()


def usage_query(*, token: ApiToken) -> QuerySet[HourlyUsage]:
    """Return the usage of the keys of the caller's teams; administrators of the installation see all."""
    if token.roles.get(DEFAULT_TEAM) is Role.ADMIN:
        return HourlyUsage.objects.all()
    return HourlyUsage.objects.filter(team__in=list(token.roles))
