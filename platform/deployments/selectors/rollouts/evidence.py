"""Evidence history of a rollout, by measurement, as columns for charts."""

from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import F

from common.errors import NotFound
from deployments.domain.analysis.points import values_of
from deployments.models import AnalysisPoint, AnalysisRun, Rollout

Column = list[float | None]


@dataclass(frozen=True, slots=True)
class Series:
    """One measurement through the steps of an attempt; all columns are as long as `at`, oldest first.

    Attributes:
        in_background: whether it is judged in the background of all steps, not at each.
        at: Unix seconds.
        step_index: of the steps at which it was measured; None in the background.
        canary, stable, limit: in `unit`; the numbers restart with each step.
        low, high: confidence bounds of the canary's true value.
        evidence_percent: progress of the evidence that the limit is broken; it carries over from step to step.
    """

    metric: str
    unit: str
    in_background: bool
    at: list[float] = field(default_factory=list)
    step_index: list[int | None] = field(default_factory=list)
    canary_requests: list[int] = field(default_factory=list)
    canary: Column = field(default_factory=list)
    stable: Column = field(default_factory=list)
    limit: Column = field(default_factory=list)
    low: Column = field(default_factory=list)
    high: Column = field(default_factory=list)
    evidence_percent: Column = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The measurements of one attempt of a rollout; `began_at` is when the attempt's first step began."""

    rollout: int
    attempt: int
    began_at: datetime | None
    series: tuple[Series, ...]


def evidence(*, rollout_id: int, attempt: int | None = None) -> Evidence:
    """Return the evidence of an attempt, the present one where None; raises NotFound."""
    rollout = Rollout.objects.select_related("service").filter(pk=rollout_id).first()
    if rollout is None:
        raise NotFound(f"there is no rollout {rollout_id}")
    chosen = rollout.attempt if attempt is None else attempt
    if not 1 <= chosen <= rollout.attempt:
        raise NotFound(f"rollout {rollout_id} has no attempt {chosen}; it has had {rollout.attempt}")
    in_order = F("step_index").asc(nulls_last=True)
    runs = list(
        AnalysisRun.objects.filter(rollout=rollout, attempt=chosen).defer("totals", "evidence").order_by(in_order)
    )
    points: dict[int, list[AnalysisPoint]] = {run.pk: [] for run in runs}
    for point in AnalysisPoint.objects.filter(run__in=runs).order_by("at", "pk"):
        points[point.run_id].append(point)
    found: dict[tuple[str, bool], Series] = {}
    for run in runs:
        units = {each["metric"]: each["unit"] for each in run.measurements}
        for point in [*points[run.pk], *_newest(run, rollout.service.seen_at)]:
            _add(found, run, point, units)
    began = min((run.started_at for run in runs), default=None)
    return Evidence(rollout.pk, chosen, began, tuple(found.values()))


def _newest(run: AnalysisRun, seen_at: datetime | None) -> list[AnalysisPoint]:
    """Return the run's present values as points since its last one."""
    at = run.finished_at or seen_at
    if at is None or not run.measurements or (run.pointed_at is not None and at <= run.pointed_at):
        return []
    return [AnalysisPoint(run=run, at=at, canary_requests=run.canary_requests, values=values_of(run.measurements))]


def _add(found: dict[tuple[str, bool], Series], run: AnalysisRun, point: AnalysisPoint, units: dict[str, str]) -> None:
    in_background = run.step_index is None
    for metric, values in point.values.items():
        key = (metric, in_background)
        series = found.setdefault(key, Series(metric, units.get(metric, ""), in_background))
        series.at.append(round(point.at.timestamp(), 2))
        series.step_index.append(run.step_index)
        series.canary_requests.append(point.canary_requests)
        columns = (series.canary, series.stable, series.limit, series.low, series.high, series.evidence_percent)
        for column, value in zip(columns, values, strict=True):
            column.append(value)
