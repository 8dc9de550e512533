"""Which moments of an analysis are kept for its drawing."""

from datetime import UTC, datetime, timedelta

import pytest

from deployments.domain.analysis.points import is_due
from deployments.models import AnalysisPoint, AnalysisRun
from deployments.reconcile.participants.evidence import run_keep
from tests import scenes

BEGAN = datetime(2026, 11, 22, 6, 0, tzinfo=UTC)
LOOK = timedelta(seconds=2)


def kept(looks: int) -> list[datetime]:
    moments: list[datetime] = []
    for look in range(looks):
        now = BEGAN + look * LOOK
        if is_due(BEGAN, moments[-1] if moments else None, now):
            moments.append(now)
    return moments


def test_at_first_every_look_is_kept() -> None:
    assert len(kept(looks=100)) == 100


@pytest.mark.parametrize(("hours", "most"), [(1, 400), (24, 710), (24 * 7, 910)])
def test_a_long_step_keeps_no_more_than_can_be_drawn(hours: int, most: int) -> None:
    moments = kept(looks=hours * 1800)
    assert most - 60 < len(moments) <= most
    lately = max(after - before for before, after in zip(moments[-20:], moments[-19:], strict=False))
    assert lately <= timedelta(hours=hours) / 100 + LOOK


@pytest.mark.django_db
def test_a_run_that_measures_nothing_has_no_points() -> None:
    scenes.rollout(scenes.service())
    run = AnalysisRun.objects.get()
    run_keep(run=run, now=BEGAN)
    run.measurements = []
    run_keep(run=run, now=BEGAN + timedelta(days=1))

    assert AnalysisPoint.objects.get().values == {"server_errors": [0.5, 0.1, 1.0, None, None, None]}
    assert AnalysisRun.objects.get().pointed_at == BEGAN
