"""Retention of usage: 13 months, so that a month can be compared with the one of a year before."""

from datetime import datetime, timedelta

from usage.models import BudgetNotice, Collector, HourlyUsage, LogPosition

KEPT_FOR = timedelta(days=396)
_OPEN_FOR = timedelta(days=1)
"""No reader has a deleted file open for so long."""


def usage_forget(*, now: datetime) -> None:
    """Delete hours, notices of budgets and positions of deleted files past their retention."""
    HourlyUsage.objects.filter(hour__lt=now - KEPT_FOR).delete()
    BudgetNotice.objects.filter(at__lt=now - KEPT_FOR).delete()
    LogPosition.objects.filter(deleted_at__lt=now - _OPEN_FOR).delete()
    LogPosition.objects.filter(read_at__lt=now - KEPT_FOR).delete()
    Collector.objects.filter(stored_at__lt=now - KEPT_FOR).delete()
