import base64
import random
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db.models import Sum

from deployments.models import InferenceService
from feedback.models import HourlyQuality, Label, Score, ServiceScorer
from feedback.services import join as joining
from feedback.services.join import SETTLED, next_look
from feedback.services.scorers import scorer_delete, scorer_set
from tests import scenes
from tests.feedback._support.rows import NOON, answer, join, keep, send

pytestmark = pytest.mark.django_db
HOUR = NOON.replace(minute=0)


@pytest.fixture
def service() -> InferenceService:
    return scenes.service()


def scorer(name: str = "right", kind: str = "accuracy", options: Mapping[str, Any] | None = None) -> ServiceScorer:
    return scorer_set(
        namespace="default", name="digits", scorer=name, kind=kind, options=options or {}, actor="test", now=NOON
    )


def check_hours() -> None:
    """Check that each hour's sums are those of the scores of its time."""
    for hour in HourlyQuality.objects.all():
        end = hour.hour + timedelta(hours=1)
        scores = Score.objects.filter(
            scorer=hour.scorer, revision=hour.revision, answered_at__gte=hour.hour, answered_at__lt=end
        )
        losses = [score.loss for score in scores]
        assert hour.scores == len(losses)
        assert hour.loss == pytest.approx(sum(losses))
        assert hour.squares == pytest.approx(sum(each * each for each in losses))
        delays = [(score.labelled_at - score.answered_at).total_seconds() for score in scores]
        assert hour.delay_s == pytest.approx(sum(delays))
    assert (HourlyQuality.objects.aggregate(all=Sum("scores"))["all"] or 0) == Score.objects.count()


def test_a_label_and_its_answer_become_a_score(service: InferenceService) -> None:
    right, cost = scorer(), scorer("far", "absoluteError", {"bound": 10})
    answer(service, "a", [(0, 5.0)], parameters={"country": "NL"})
    received = NOON + timedelta(minutes=10)
    send(service, {"a": 7.5}, received)
    joined_at = NOON + timedelta(minutes=11)
    assert join(joined_at) == 1
    score = Score.objects.get(scorer=cost)
    assert (score.request_id, score.revision, score.loss) == ("a", "digits-00001", 0.25)
    assert (score.answered_at, score.labelled_at, score.scored_at) == (NOON, received, joined_at)
    assert score.parameters == {"country": "NL"}
    assert Score.objects.get(scorer=right).loss == 1
    label = Label.objects.get()
    assert (label.joined_at, label.next_try_at) == (joined_at, None)
    hour = HourlyQuality.objects.get(scorer=cost)
    assert (hour.hour, hour.scores, hour.loss, hour.squares, hour.delay_s) == (HOUR, 1, 0.25, 0.0625, 600)
    assert join() == 0


def test_a_label_before_its_answer_waits_and_is_joined_within_seconds(service: InferenceService) -> None:
    scorer()
    send(service, {"a": 3})
    now = NOON
    for _ in range(3):  # looks until 5 s after the label
        join(now)
        now += timedelta(seconds=2)
    answer(service, "a", at=NOON)
    while not Score.objects.exists():
        now += timedelta(seconds=2)
        join(now)
    assert now - NOON <= timedelta(seconds=15)


def test_looks_for_an_answer_become_rare() -> None:
    age, looks = 0, 0
    while age < 30 * 24 * 3600:
        age += next_look(age)
        looks += 1
        if age < 600:
            assert next_look(age) <= 60
    assert looks < 200


def test_an_answer_of_another_revision_that_comes_later_is_scored_too(service: InferenceService) -> None:
    scorer()
    answer(service, "a", [(3, 0.9)])
    send(service, {"a": 3}, NOON + timedelta(seconds=1))
    join(NOON + timedelta(seconds=2))
    answer(service, "a", [(4, 0.9)], revision="digits-00002", at=NOON + timedelta(seconds=1))
    join(NOON + timedelta(seconds=10))
    assert Score.objects.count() == 1
    join(NOON + SETTLED + timedelta(seconds=5))
    assert dict(Score.objects.values_list("revision", "loss")) == {"digits-00001": 0, "digits-00002": 1}
    assert Label.objects.get().next_try_at is None
    check_hours()


def test_a_changed_label_replaces_its_scores_and_corrects_the_hours(service: InferenceService) -> None:
    scorer("far", "absoluteError", {"bound": 10})
    for number in range(4):
        answer(service, f"r{number}", [(0, float(number))])
    send(service, {f"r{number}": 0 for number in range(4)})
    join()
    check_hours()
    before = Score.objects.get(request_id="r3").pk
    later = NOON + timedelta(hours=3)
    send(service, {"r3": 3, "r2": "cat"}, later)
    join(later)
    assert Score.objects.get(request_id="r3").loss == 0
    assert Score.objects.get(request_id="r3").pk == before
    assert not Score.objects.filter(request_id="r2").exists()  # its label no longer fits
    check_hours()
    found = ServiceScorer.objects.get()
    assert found.unscored == 1
    assert found.unscored_reason.startswith("request r2: the label is the text 'cat'")


def test_labels_in_any_order_with_changes_and_repeats_give_the_same_scores(service: InferenceService) -> None:
    scorer()
    chance = random.Random(7)
    right = {f"r{number}": chance.randrange(3) for number in range(60)}
    sent = [(request_id, chance.randrange(3)) for request_id in right] + list(right.items())
    answers = list(right)
    chance.shuffle(answers)
    now = NOON
    for begin in range(0, len(sent), 10):
        for request_id in answers[begin // 2 : begin // 2 + 5]:
            answer(service, request_id, [(1, 0.5)], at=NOON - timedelta(minutes=chance.randrange(120)))
        send(service, dict(sent[begin : begin + 10]), now)
        if chance.random() < 0.5:
            join(now)
        now += timedelta(minutes=chance.randrange(30))
    join(now + timedelta(hours=12))
    assert dict(Score.objects.values_list("request_id", "loss")) == {
        request_id: 0.0 if label == 1 else 1.0 for request_id, label in right.items()
    }
    check_hours()


def test_probabilities_are_read_from_the_sealed_values(service: InferenceService) -> None:
    keep(service, outputs=["p"])
    scorer("brier", "brier")
    tensor = {"datatype": "FP32", "shape": [2, 2], "data": [0.5, 0.5, 0.0, 1.0]}
    answer(service, "a", [(0, 0.5), (1, 1.0)], outputs={"p": tensor})
    answer(service, "nested", [(0, 0.5)], outputs={"p": {**tensor, "shape": [1, 2], "data": [[0.5, 0.5]]}})
    half = base64.b64encode(np.array([0.5, 0.5], "<f2").tobytes()).decode()  # as taps write FP16
    of_half = {"datatype": "FP16", "shape": [1, 2], "data": [half], "parameters": {"encoding": "base64"}}
    answer(service, "half", [(0, 0.5)], outputs={"p": of_half})
    answer(service, "none")
    send(service, {"a": [0, 1], "nested": 1, "half": 1, "none": 1})
    join()
    assert dict(Score.objects.values_list("request_id", "loss")) == {"a": 0.125, "nested": 0.25, "half": 0.25}
    assert ServiceScorer.objects.get().unscored == 1
    assert "'p' are not kept" in ServiceScorer.objects.get().unscored_reason


def test_values_under_another_key_leave_the_label_unscored_and_the_rest_goes_on(
    service: InferenceService, settings: Any
) -> None:
    keep(service, outputs=["p"])
    scorer("brier", "brier")
    scorer()
    answer(service, "a", outputs={"p": {"datatype": "FP32", "shape": [1, 2], "data": [0.5, 0.5]}})
    send(service, {"a": 3})
    settings.SECRET_KEY = "another-" + "x" * 40
    join()
    assert [score.scorer.name for score in Score.objects.all()] == ["right"]
    assert "FAIRLEAD_SECRET_KEY" in ServiceScorer.objects.get(name="brier").unscored_reason


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(joining, "BATCH", 7)
    return iter([7])


def test_a_new_scorer_scores_labels_of_before_it_newest_first(service: InferenceService, small_batches: object) -> None:
    scorer()
    for number in range(20):
        answer(service, f"r{number}", [(number % 2, 0.9)])
    for number in range(20):
        send(service, {f"r{number}": 1})
    join()
    assert Score.objects.count() == 20
    scorer("second")
    assert ServiceScorer.objects.get(name="second").backfill_below is not None
    moments = iter([NOON, NOON, NOON + timedelta(days=1)])  # time for one batch
    joining.labels_join(clock=lambda: next(moments))
    first = set(Score.objects.filter(scorer__name="second").values_list("request_id", flat=True))
    assert first == {f"r{number}" for number in range(13, 20)}
    send(service, {"r0": 0}, NOON + timedelta(hours=2))  # changes meanwhile
    join(NOON + timedelta(hours=3))
    assert Score.objects.filter(scorer__name="second").count() == 20
    assert ServiceScorer.objects.get(name="second").backfill_below is None
    assert {score.loss for score in Score.objects.filter(request_id="r0")} == {0.0}
    check_hours()


def test_a_changed_scorer_begins_from_the_start_and_a_deleted_one_leaves_nothing(service: InferenceService) -> None:
    scorer("far", "absoluteError", {"bound": 10})
    answer(service, "a", [(0, 5.0)])
    send(service, {"a": 0})
    join()
    scorer("far", "absoluteError", {"bound": 20})
    assert Score.objects.count() == HourlyQuality.objects.count() == 0
    join()
    assert Score.objects.get().loss == 0.25
    scorer_delete(namespace="default", name="digits", scorer="far", actor="test", now=NOON)
    assert Score.objects.count() == HourlyQuality.objects.count() == 0


def test_a_label_without_scorers_is_joined_all_the_same(service: InferenceService) -> None:
    answer(service, "a")
    send(service, {"a": 3})
    join()
    assert Label.objects.get().joined_at is not None


def test_batches_go_on_until_no_label_is_due(service: InferenceService, small_batches: object) -> None:
    scorer()
    other = scenes.service("letters")
    for number in range(20):
        answer(service, f"r{number}")
        answer(other, f"r{number}")
    send(service, {f"r{number}": 3 for number in range(20)})
    send(other, {f"r{number}": 3 for number in range(25)})
    assert join(NOON + timedelta(minutes=5)) == 45
    assert Label.objects.filter(joined_at=None).count() == 5
    assert Score.objects.count() == 20
