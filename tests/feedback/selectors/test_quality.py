"""Quality by scorer and revision: sums of hours, bounded reads of scores, and the worst answers."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from common.errors import InvalidInput, NotFound
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService
from feedback.models import Answer, ServiceScorer
from feedback.selectors import quality
from feedback.selectors.labels import feedback_summary
from feedback.selectors.quality import labelled_percent, quality_of, recent_of, scorer_named, scorers_of, worst_answers
from tests import scenes
from tests.feedback._support.scenes import DIGIT, Given, answered, kept, scored, scorer, tensors

pytestmark = pytest.mark.django_db
STABLE, CANARY = "digits-00001", "digits-00002"


@pytest.fixture
def service() -> InferenceService:
    service = scenes.service()
    scenes.rollout(service)
    return service


def given(count: int = 40, **more: Any) -> list[Given]:
    """Return answers of both revisions over the last hours; each fourth of the canary's is wrong."""
    now = timezone.now()
    return [
        Given(
            f"{revision}-{number}",
            revision,
            now - timedelta(minutes=10 * number),
            loss=float(revision == CANARY and number % 4 == 0),
            delay_s=float(number),
            parameters={"region": "south" if number % 4 == 0 else "north"},
            **more,
        )
        for number in range(count)
        for revision in (STABLE, CANARY)
    ]


def test_revisions_come_with_roles_and_means_by_hour(
    service: InferenceService, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    now = timezone.now()
    kept(service, now)
    answered(service, [scorer(service, now)], given())
    with django_assert_num_queries(1):
        scorers = scorers_of(service.pk)
    with django_assert_num_queries(2):
        (found,) = quality_of(scorers, days=7, now=now)
    assert [(each.name, each.role, each.version) for each in found.revisions] == [
        (STABLE, "stable", 1),
        (CANARY, "canary", 2),
    ]
    stable, canary = found.revisions
    assert (stable.total.scores, stable.total.mean) == (40, 0.0)
    assert (canary.total.scores, canary.total.mean) == (40, 0.25)
    assert found.of(Role.CANARY) is canary
    assert sum(sums.scores for _, sums in canary.hours) == 40
    assert [hour for hour, _ in canary.hours] == sorted(hour for hour, _ in canary.hours)


def test_the_number_of_queries_does_not_grow(
    service: InferenceService, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    now = timezone.now()
    kept(service, now)
    scorers = [scorer(service, now, name) for name in ("a", "b", "c")]
    answered(service, scorers, given())
    with django_assert_num_queries(2):
        found = quality_of(scorers, days=7, now=now)
    with django_assert_num_queries(1):
        recent = recent_of(found[0], most_worst=10)
    with django_assert_num_queries(2):
        assert len(worst_answers(service.pk, recent.worst)) == 10
    with django_assert_num_queries(3):
        feedback_summary(service=service)
    with django_assert_num_queries(0):
        assert quality_of([], days=7, now=now) == []
        assert worst_answers(service.pk, []) == []


def test_hours_before_the_period_are_left_out(service: InferenceService) -> None:
    now = timezone.now()
    old = [Given("old", STABLE, now - timedelta(days=8), loss=1.0)]
    answered(service, [scorer(service, now)], old)
    assert quality_of(scorers_of(service.pk), days=7, now=now)[0].revisions == ()
    assert quality_of(scorers_of(service.pk), days=9, now=now)[0].revisions[0].total.mean == 1.0
    with pytest.raises(InvalidInput, match="days is 91; expected 1 to 90"):
        quality_of(scorers_of(service.pk), days=91, now=now)


def test_a_deleted_revision_keeps_its_quality_without_a_role(service: InferenceService) -> None:
    now = timezone.now()
    answered(service, [scorer(service, now)], [Given("x", "digits-00007", now)])
    assert [
        (each.name, each.role, each.version)
        for each in quality_of(scorers_of(service.pk), days=1, now=now)[0].revisions
    ] == [("digits-00007", "", 0)]


def test_slices_delays_and_the_worst_come_from_the_newest_scores(
    service: InferenceService, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    answered(service, [scorer(service, now)], given())
    (found,) = quality_of(scorers_of(service.pk), days=7, now=now)
    recent = recent_of(found, most_worst=3)
    assert recent.scores == 80
    assert recent.delays_s == (20.0, 36.0, 39.0)
    assert [(each.value, each.scores, each.is_worse) for each in recent.slices] == [
        ("north", 60, False),
        ("south", 20, False),
    ], "10 scores of a side compare nothing"
    assert [(request_id, loss) for request_id, _, loss in recent.worst] == [
        (f"{CANARY}-{number}", 1.0) for number in (0, 4, 8)
    ], "the newest of the same loss come first"
    monkeypatch.setattr(quality, "MOST_SCORES", 30)
    assert recent_of(found).scores == 30
    assert recent_of(found).delays_s == (7.0, 13.0, 14.0), "only the newest"


def test_scores_without_loss_are_never_the_worst(service: InferenceService) -> None:
    now = timezone.now()
    answered(service, [scorer(service, now)], [Given("x", STABLE, now)])
    (found,) = quality_of(scorers_of(service.pk), days=1, now=now)
    assert recent_of(found, most_worst=5).worst == []


def test_the_worst_answers_come_with_label_and_decrypted_values(service: InferenceService) -> None:
    now = timezone.now()
    values = {"inputs": tensors(pixels=DIGIT), "outputs": tensors(probabilities=[0.1, 0.9])}
    answered(service, [], [Given("x", CANARY, now, label=7, values=values), Given("y", CANARY, now, label=None)])
    found = worst_answers(service.pk, [("x", CANARY, 1.0), ("gone", CANARY, 1.0), ("y", CANARY, 0.5)])
    assert [(each.request_id, each.label, each.loss, each.version, each.problem) for each in found] == [
        ("x", 7, 1.0, 2, ""),
        ("y", None, 0.5, 2, ""),
    ]
    assert found[0].inputs["pixels"]["data"] == DIGIT
    assert found[0].outputs["probabilities"]["shape"] == [1, 2]
    assert found[1].inputs == {}


def test_what_cannot_be_decrypted_says_why(service: InferenceService, settings: LazySettings) -> None:
    now = timezone.now()
    answered(service, [], [Given("x", CANARY, now, values={"inputs": {}, "outputs": {}})])
    settings.SECRET_KEY = "another-key-of-this-test-0123456789-abcdef"
    settings.SECRET_KEY_FALLBACKS = []
    (found,) = worst_answers(service.pk, [("x", CANARY, 1.0)])
    assert "FAIRLEAD_SECRET_KEY" in found.problem
    Answer.objects.update(sealed=b"")
    assert worst_answers(service.pk, [("x", CANARY, 1.0)])[0].problem == ""


def test_the_labelled_share_is_of_the_kept_answers(service: InferenceService) -> None:
    now = timezone.now()
    assert labelled_percent(feedback_summary(service=service)) is None
    kept(service, now)
    answered(service, [], [Given("x", STABLE, now), Given("y", STABLE, now, label=None)])
    assert labelled_percent(feedback_summary(service=service)) == 50.0


def test_an_unknown_scorer_is_refused_with_those_that_there_are(service: InferenceService) -> None:
    now = timezone.now()
    scorer(service, now, "right")
    assert scorer_named(scorers_of(service.pk), "right").kind == "accuracy"
    with pytest.raises(NotFound, match="has no scorer 'wrong'; it has right"):
        scorer_named(scorers_of(service.pk), "wrong")
    ServiceScorer.objects.all().delete()
    with pytest.raises(NotFound, match="it has no scorers"):
        scorer_named(scorers_of(service.pk), "wrong")


def test_units_multiply_losses(service: InferenceService) -> None:
    now = timezone.now()
    one = scorer(service, now, "far", "absoluteError", bound=20)
    scored(one, [Given("x", STABLE, now, loss=0.25)])
    (found,) = quality_of([one], days=1, now=now)
    assert (found.unit.name, found.unit.scale * (found.revisions[0].total.mean or 0)) == ("absolute error", 5.0)
