"""Drift: the present of a feature becomes its reference, and old hours are deleted."""

from datetime import datetime, timedelta

import numpy as np

from accounts.services import audit_record
from common.errors import Conflict, NotFound
from deployments.reconcile.service_change import Change, changing
from deployments.selectors import service_get
from events.domain.kinds import Kind
from feedback.domain.drift.watch import LEAST_ROWS, watch_json, with_present
from feedback.models import DriftFeature, DriftHour
from feedback.selectors.drift import watch_of

KEPT_FOR = timedelta(days=90)
PRESENT = timedelta(hours=24)


def drift_accept(*, namespace: str, name: str, features: list[str], actor: str, now: datetime) -> list[str]:
    """Make the last 24 hours the reference of features, which ends their alarms.

    A feature whose reference is still learned has its reference now, of what it has learned. One whose last 24 hours
    are mostly outside of its bins, or have fewer than 500 rows since it drifted, gets new bins and learns from now on.

    Args:
        features: their names; empty for all that have drifted.

    Returns:
        The names of the features.

    Raises:
        NotFound: the service has no such feature.
        Conflict: none has drifted, or one that is learned has fewer than 500 rows.
    """
    service = service_get(namespace=namespace, name=name)
    with changing(service.pk, now=now) as change:
        rows = _wanted(change, features)
        for row in rows:
            _accept(change, row, now)
        DriftFeature.objects.bulk_update(rows, ["bins", "since", "state", "evidence", "alarm_at", "sentence"])
        names = [row.name for row in rows]
        change.event(Kind.DATA_DRIFT_ACCEPTED, f"{actor} made the present the reference of {_listed(names)}")
        target = f"services/{service.namespace}/{service.name}/feedback/drift"
        audit_record(actor=actor, action="drift.accept", target=target, now=now, after={"features": names})
    return names


def drift_forget(now: datetime) -> int:
    """Delete hours older than 90 days; return how many."""
    deleted, _ = DriftHour.objects.filter(hour__lt=now - KEPT_FOR).delete()
    return deleted


def _wanted(change: Change, features: list[str]) -> list[DriftFeature]:
    rows = DriftFeature.objects.filter(service=change.service).exclude(state=None).order_by("pk")
    if not features:
        drifted = list(rows.exclude(alarm_at=None))
        if not drifted:
            raise Conflict(f"no feature of {change.service} has drifted; name the features to accept")
        return drifted
    found = {row.name: row for row in rows.filter(name__in=features)}
    missing = [each for each in features if each not in found]
    if missing:
        raise NotFound(
            f"{change.service} has no feature {missing[0]!r} with a shape; GET feedback/drift lists those that it has"
        )
    return list(found.values())


def _accept(change: Change, row: DriftFeature, now: datetime) -> None:
    watch = watch_of(row)
    if watch.learning is not None and watch.learning.total < LEAST_ROWS:
        raise Conflict(
            f"the reference of {row.name!r} has {watch.learning.total} rows so far; accept it from {LEAST_ROWS} on"
        )
    present = np.zeros(watch.bins.size)
    began = max(now - PRESENT, row.alarm_at or now - PRESENT)  # the hour of the alarm has requests from before it
    for hour in DriftHour.objects.filter(service=change.service, hour__gte=began, revision__in=_stable(change)):
        counts = hour.counts.get(row.name, ())
        if len(counts) == len(present):
            present += np.array(counts, float)
    after = with_present(watch, present if present.sum() >= LEAST_ROWS else watch.recent, now)
    if after is None:
        row.bins, row.state = None, None
    else:
        row.state = watch_json(after)
        row.since = after.since
    row.evidence, row.alarm_at, row.sentence = 0.0, None, ""


def _stable(change: Change) -> list[str]:
    return [revision.name for revision in change.revisions if revision.role == "stable"]


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more features"
