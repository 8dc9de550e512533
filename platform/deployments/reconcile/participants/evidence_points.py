"""Keeps how the evidence of a step came about, as points to be drawn. Called by the reconciler with what a tick found.

A point is kept when a hundredth of the step's time has passed since the one before: a drawing of a minute has one for
each look, one of a day has about seven hundred, and nothing has to be thrown away.
"""

from datetime import datetime

from deployments.models import AnalysisPoint, AnalysisRun

PARTS = 100


def is_due(began: datetime, last: datetime | None, now: datetime) -> bool:
    """Return whether a point is to be kept now."""
    return last is None or now - last >= (now - began) / PARTS


def points_keep(*, run: AnalysisRun, now: datetime) -> None:
    """Keep what a saved run has come to, if a point is due; a run that measures nothing has none."""
    if not run.measurements or not is_due(run.started_at, run.pointed_at, now):
        return
    AnalysisPoint.objects.create(run=run, at=now, canary_requests=run.canary_requests, values=values_of(run))
    run.pointed_at = now
    run.save(update_fields=["pointed_at"])


def values_of(run: AnalysisRun) -> dict[str, list[float | None]]:
    """Return a run's measurements as a point has them."""
    columns = ("canary", "stable", "limit", "low", "high", "evidence_percent")
    return {each["metric"]: [each.get(column) for column in columns] for each in run.measurements}
