"""Rollout timeline: the steps as stations, passed, present or to come, with their times. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from deployments.domain.phases import Phase
from deployments.views.shapes import AnalysisRunView, RolloutView, StepView


class Standing(StrEnum):
    """The state of a station: passed, present, to come, or failed."""

    DONE = "done"
    NOW = "now"
    ENDED = "ended"
    NEXT = "next"


@dataclass(frozen=True, slots=True)
class Station:
    """One step on the timeline.

    Attributes:
        since: when the gateway first sent the step's portion; None before that.
        hold_ends_at: when its hold ends; None without one, and for other steps than the present one.
        took_seconds: how long it lasted; None until its end.
    """

    step: StepView
    standing: Standing
    since: datetime | None = None
    hold_ends_at: datetime | None = None
    took_seconds: float | None = None


def stations_of(rollout: RolloutView | None) -> tuple[Station, ...]:
    """Return the stations of the present attempt, in their order."""
    return () if rollout is None else tuple(_stations(rollout))


def _stations(rollout: RolloutView) -> Iterator[Station]:
    runs = {run.step_index: run for run in rollout.analysis_runs if run.attempt == rollout.attempt}
    phase = Phase(rollout.phase)
    for index, step in enumerate(rollout.steps):
        run = runs.get(index)
        if phase is Phase.HEALTHY or index < rollout.step_index:
            yield Station(step, Standing.DONE, None if run is None else run.started_at, None, _took(run))
        elif index > rollout.step_index:
            yield Station(step, Standing.NEXT)
        elif phase.is_finished:
            yield Station(step, Standing.ENDED, None if run is None else run.started_at, None, _took(run))
        else:
            since = rollout.confirmed_at
            has_hold = since is not None and step.hold_seconds
            ends = since + timedelta(seconds=step.hold_seconds) if since is not None and has_hold else None
            yield Station(step, Standing.NOW, since, ends)


def _took(run: AnalysisRunView | None) -> float | None:
    if run is None or run.finished_at is None:
        return None
    return round((run.finished_at - run.started_at).total_seconds())
