"""Evidence history of a step, as points for its chart. Called by the reconciler with a tick's findings.

A point is stored when a hundredth of the step's time has passed since the one before: a chart of a minute has one for
each tick, one of a day has about seven hundred, and nothing has to be thinned out.
"""

from datetime import datetime

from deployments.models import AnalysisPoint, AnalysisRun

PARTS = 100


def is_due(began: datetime, last: datetime | None, now: datetime) -> bool:
    """Return whether a point is due."""
    return last is None or now - last >= (now - began) / PARTS


def points_keep(*, run: AnalysisRun, now: datetime) -> None:
    """Store a point of a saved run, if one is due; a run without measurements has none."""
    if not run.measurements or not is_due(run.started_at, run.pointed_at, now):
        return
    AnalysisPoint.objects.create(run=run, at=now, canary_requests=run.canary_requests, values=values_of(run))
    run.pointed_at = now
    run.save(update_fields=["pointed_at"])


def values_of(run: AnalysisRun) -> dict[str, list[float | None]]:
    """Return a run's measurements in the form of a point."""
    columns = ("canary", "stable", "limit", "low", "high", "evidence_percent")
    return {each["metric"]: [each.get(column) for column in columns] for each in run.measurements}
