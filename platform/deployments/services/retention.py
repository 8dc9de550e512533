"""Retention: deletes old data of services, so that the database does not grow for ever. An hourly task calls it.

Services and the audit log stay; revisions, with the rollouts to and from them and their verdicts, as
`services.revision_history` defines. Rows are deleted in small batches, since on SQLite one writer blocks all others.
"""

from datetime import datetime, timedelta

from django.db.models import F, Q

from deployments.models import AnalysisPoint, AnalysisRun, ComparisonRun, TrafficPoint
from events.models import Event

_BATCH = 500
_WAITING_KEPT = timedelta(hours=1)
KEPT_EVENTS = 100
"""The newest events of each service and cluster stay, however old they are."""


def events_forget(*, now: datetime, older_than: timedelta) -> int:
    """Delete old events and return how many; their numbers are not reused."""
    of_service = Q(service__isnull=False, seq__lte=F("service__event_seq") - KEPT_EVENTS)
    of_cluster = Q(cluster__isnull=False, seq__lte=F("cluster__event_seq") - KEPT_EVENTS)
    old = Event.objects.filter(of_service | of_cluster, at__lt=now - older_than)
    deleted = 0
    while ids := list(old.values_list("pk", flat=True)[:_BATCH]):
        Event.objects.filter(pk__in=ids).delete()
        deleted += len(ids)
    return deleted


def measurements_forget(*, now: datetime, older_than: timedelta) -> int:
    """Empty the measurements of rollouts that ended long ago, with their history, and return the number of steps.

    Each step's verdict, its sentence and its numbers of requests stay. A rollout that is retried has not ended.
    """
    old = AnalysisRun.objects.filter(rollout__finished_at__lt=now - older_than)
    emptied = 0
    while ids := list(old.exclude(measurements=[], totals={}).values_list("pk", flat=True)[:_BATCH]):
        AnalysisPoint.objects.filter(run__in=ids).delete()
        emptied += old.filter(pk__in=ids).update(measurements=[], totals={})
    return emptied


def comparisons_forget(*, now: datetime, older_than: timedelta) -> int:
    """Delete the comparisons of rollouts that ended long ago, and return the number of steps.

    They contain parts of clients' requests. Whole requests that wait for their counterpart are deleted within the hour
    after the comparison last read them.
    """
    ComparisonRun.objects.filter(compared_at__lt=now - _WAITING_KEPT).exclude(waiting=b"").update(waiting=b"")
    old = ComparisonRun.objects.filter(rollout__finished_at__lt=now - older_than)
    deleted = 0
    while ids := list(old.values_list("pk", flat=True)[:_BATCH]):
        ComparisonRun.objects.filter(pk__in=ids).delete()
        deleted += len(ids)
    return deleted


def traffic_forget(*, now: datetime, older_than: timedelta) -> int:
    """Delete older traffic points, and return how many."""
    old = TrafficPoint.objects.filter(at__lt=now - older_than)
    deleted = 0
    while ids := list(old.values_list("pk", flat=True)[:_BATCH]):
        deleted += TrafficPoint.objects.filter(pk__in=ids).delete()[0]
    return deleted
