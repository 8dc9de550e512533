"""Sums of labelled answers by side, from the tables."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from deployments.domain.analysis.evidence.labelled import WHOLE, Answered, Asked, Losses, Sides
from deployments.models import InferenceService
from feedback.models import Kept, Score, ServiceScorer
from feedback.selectors import gate_labels
from tests.deployments._support.platform import Platform

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
STABLE, CANARY = "digits-00001", "digits-00002"


@pytest.fixture
def scorer(db: None) -> ServiceScorer:
    platform = Platform()
    platform.live()
    service, said = InferenceService.objects.get(), {"created_at": BEGAN, "created_by": "alice"}
    Kept.objects.create(service=service, share_percent=100, days=30, max_rows=10**6, max_bytes=2**30, **said)
    return ServiceScorer.objects.create(service=service, name="mae", kind="absoluteError", options={"bound": 4}, **said)


def _scores(
    scorer: ServiceScorer,
    revision: str,
    losses: Iterable[float],
    *,
    at: float = 0.0,
    delay: float = 5.0,
    **parameters: str,
) -> None:
    answered = BEGAN + timedelta(seconds=at)
    Score.objects.bulk_create(
        Score(
            scorer=scorer, request_id=f"r-{at:g}-{number}", revision=revision, answered_at=answered,
            labelled_at=answered + timedelta(seconds=delay), scored_at=answered + timedelta(seconds=delay), loss=loss,
            parameters=parameters,
        )
        for number, loss in enumerate(losses)
    )  # fmt: skip


def _asked(scorer: ServiceScorer, **changed: Any) -> Answered:
    began = BEGAN.timestamp()
    said = {"began": began, "ended": began + 10, "horizon_s": 30.0, "least_canary": 2, "least_stable": 3, **changed}
    return gate_labels.labelled_answers(Asked(scorer.service_id, "mae", CANARY, STABLE, **said))


def test_each_side_is_summed_up_over_the_requests_of_the_time(scorer: ServiceScorer) -> None:
    _scores(scorer, CANARY, [0.5, 0.25])
    _scores(scorer, STABLE, [0.0, 0.5, 0.5, 1.0], at=9.9)
    _scores(scorer, CANARY, [1.0], at=10.0)
    _scores(scorer, STABLE, [1.0], at=-0.1)
    found = _asked(scorer)
    assert found.sums == {WHOLE: Sides(Losses(2, 0.75, 0.3125), Losses(4, 2.0, 1.5))}
    assert (found.unit, found.scale, found.ended) == ("absolute error", 4.0, BEGAN.timestamp() + 10)


def test_labels_that_came_after_the_horizon_are_left_out_on_both_sides(scorer: ServiceScorer) -> None:
    for revision in (CANARY, STABLE):
        _scores(scorer, revision, [0.5] * 3, delay=30.0)
        _scores(scorer, revision, [1.0] * 3, at=1, delay=30.1)
    assert _asked(scorer).sums[WHOLE] == Sides(Losses(3, 1.5, 0.75), Losses(3, 1.5, 0.75))


def test_with_too_few_nothing_is_summed_up(
    scorer: ServiceScorer, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    _scores(scorer, CANARY, [0.5])
    _scores(scorer, STABLE, [0.5] * 9)
    with django_assert_num_queries(4):
        found = _asked(scorer)
    assert (found.canary, found.stable, found.sums) == (1, 3, {})


def test_pairs_are_requests_that_both_answered_and_that_have_a_label(scorer: ServiceScorer) -> None:
    _scores(scorer, CANARY, [1.0, 0.5, 0.5, 0.0])
    _scores(scorer, STABLE, [0.0, 0.5, 0.25])
    _scores(scorer, STABLE, [1.0] * 9, at=1)
    assert _asked(scorer, is_paired=True).sums == {WHOLE: Sides(Losses(3, 2.0, 1.5), Losses(3, 0.75, 0.3125))}


def test_values_of_a_parameter_are_summed_up_apart(scorer: ServiceScorer) -> None:
    _scores(scorer, CANARY, [1.0, 1.0], region="eu")
    _scores(scorer, CANARY, [0.0], at=1, region="us")
    _scores(scorer, STABLE, [0.0] * 3, at=2, region="us")
    found = _asked(scorer, parameter="region", values=("eu", "us")).sums
    assert {value: (both.canary.labels, both.stable.labels) for value, both in found.items()} == {
        WHOLE: (3, 3), "eu": (2, 0), "us": (1, 3),
    }  # fmt: skip


def test_a_look_has_a_bound(scorer: ServiceScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_labels, "MOST_LABELS", 5)
    _scores(scorer, CANARY, [1.0] * 2)
    for second in range(8):
        _scores(scorer, STABLE, [0.0], at=second)
    found = _asked(scorer)
    assert (found.ended, found.sums[WHOLE].stable.labels) == (BEGAN.timestamp() + 5, 5)


def test_habits_are_those_of_stable_before_a_time(scorer: ServiceScorer) -> None:
    for second in range(100):
        _scores(scorer, STABLE, [0.25], at=second, delay=float(second), region="eu" if second % 3 else "us")
    _scores(scorer, STABLE, [1.0], at=200)
    _scores(scorer, CANARY, [1.0], at=3)
    at = BEGAN + timedelta(seconds=150)
    found = gate_labels.label_habits(scorer.service_id, "mae", STABLE, at, "region")
    assert (found.unit, found.scale, found.horizon_s, found.per_second) == ("absolute error", 4.0, 90.0, 1.0)
    assert (found.stable, found.values) == (Losses(100, 25.0, 6.25), ("eu", "us"))
    none = gate_labels.label_habits(scorer.service_id, "mae", CANARY, BEGAN, "")
    assert (none.horizon_s, none.stable, none.per_second, none.values) == (60.0, Losses(), None, ())


def test_what_is_missing_is_said(scorer: ServiceScorer) -> None:
    at = BEGAN + timedelta(days=1)
    assert gate_labels.label_habits(scorer.service_id, "other", STABLE, at, "").problem == (
        "service default/digits has no scorer other, so its answers cannot be judged; add it with: fairlead feedback "
        "score default/digits other --kind accuracy (or another kind)"
    )
    Kept.objects.all().delete()
    assert "nothing is kept of the answers of service default/digits" in _asked(scorer).problem
