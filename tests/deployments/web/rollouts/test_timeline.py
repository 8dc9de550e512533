"""Where the steps of a rollout lie on its timeline, and since when."""

from datetime import timedelta

import pytest
from django.utils import timezone

from deployments.domain.phases import Phase
from deployments.models import AnalysisRun
from deployments.selectors import rollout_detail
from deployments.web.rollouts.timeline import Standing, stations_of
from tests import scenes

pytestmark = pytest.mark.django_db


def test_no_rollout_has_no_stations() -> None:
    assert stations_of(None) == ()


def test_steps_are_behind_it_under_it_and_before_it() -> None:
    row = scenes.rollout(scenes.service())
    began = timezone.now() - timedelta(minutes=5)
    AnalysisRun.objects.update(started_at=began, finished_at=began + timedelta(seconds=72))
    scenes.move(row, step_index=1)

    first, second, third = stations_of(rollout_detail(rollout_id=row.pk, now=timezone.now()))

    assert (first.standing, first.since, first.took_seconds) == (Standing.DONE, began, 72)
    assert (second.standing, third.standing) == (Standing.NOW, Standing.NEXT)
    assert second.since == row.confirmed_at
    assert second.hold_ends_at is not None
    assert second.hold_ends_at - row.confirmed_at == timedelta(seconds=10)
    assert (third.since, third.hold_ends_at, third.took_seconds) == (None, None, None)


def test_before_the_gateway_sends_anything_no_clock_runs() -> None:
    row = scenes.rollout(scenes.service())
    row.confirmed_at = None
    row.save()

    now = stations_of(rollout_detail(rollout_id=row.pk, now=timezone.now()))[0]

    assert (now.standing, now.since, now.hold_ends_at) == (Standing.NOW, None, None)


@pytest.mark.parametrize(
    ("phase", "standings"),
    [
        pytest.param(Phase.HEALTHY, "done done done", id="all are behind one that went well"),
        pytest.param(Phase.DEGRADED, "done ended next", id="one that failed stands where it ended"),
        pytest.param(Phase.ABORTED, "done ended next", id="so does one that was aborted"),
    ],
)
def test_a_rollout_that_is_over_has_no_present_step(phase: Phase, standings: str) -> None:
    row = scenes.rollout(scenes.service())
    scenes.move(row, step_index=1, phase=phase)

    stations = stations_of(rollout_detail(rollout_id=row.pk, now=timezone.now()))

    assert [station.standing for station in stations] == standings.split()
