from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from common.errors import Conflict, NotFound
from deployments.models import InferenceService
from feedback.domain.labels import NewLabel
from feedback.models import Kept, Label, Score
from feedback.services.labels import Taken, labels_forget, labels_take
from feedback.services.scorers import scorer_set
from tests import scenes
from tests.feedback._support.rows import NOON, answer, join, keep, send

pytestmark = pytest.mark.django_db


@pytest.fixture
def service() -> InferenceService:
    return scenes.service()


def test_the_same_labels_again_change_nothing(service: InferenceService) -> None:
    assert send(service, {"a": 3, "b": "cat", "c": [1, 2.5]}) == Taken(received=3, changed=0, repeated=0)
    before = list(Label.objects.order_by("pk").values())
    assert send(service, {"c": [1, 2.5], "b": "cat", "a": 3}, NOON + timedelta(days=1)) == Taken(3, 0, 3)
    assert list(Label.objects.order_by("pk").values()) == before


def test_another_value_replaces_a_label_and_it_is_due_again(service: InferenceService) -> None:
    answer(service, "a")
    send(service, {"a": 3})
    join()
    later = NOON + timedelta(hours=2)
    assert send(service, {"a": 4, "b": 1}, later) == Taken(received=2, changed=1, repeated=0)
    label = Label.objects.get(request_id="a")
    assert (label.value, label.changes, label.received_at, label.joined_at) == (4, 1, later, None)
    assert label.next_try_at == later


def test_of_two_labels_for_one_request_in_a_batch_the_last_counts(service: InferenceService) -> None:
    batch = [NewLabel("a", value, None) for value in (1, 1, 2)]
    taken = labels_take(namespace="default", name="digits", labels=batch, actor="test", now=NOON)
    assert taken == Taken(received=3, changed=1, repeated=1)
    assert Label.objects.get().value == 2


def test_labels_of_other_services_are_others(service: InferenceService) -> None:
    other = scenes.service("letters")
    send(service, {"a": 1})
    assert send(other, {"a": 2}) == Taken(1, 0, 0)
    assert Label.objects.count() == 2


def test_a_batch_of_ten_thousand_takes_few_statements(service: InferenceService) -> None:
    batch = {f"request-{number}": number for number in range(10_000)}
    with CaptureQueriesContext(
        connection,
    ) as first:
        send(service, batch)
    if connection.vendor == "postgresql":
        assert len(first) <= 10
    with CaptureQueriesContext(connection) as again:
        assert send(service, batch).repeated == 10_000
    assert len(again) <= 6


def test_a_service_that_is_deleted_or_not_there_takes_none(service: InferenceService) -> None:
    with pytest.raises(NotFound):
        labels_take(namespace="default", name="letters", labels=[], actor="test", now=NOON)
    InferenceService.objects.update(deleting_at=timezone.now())
    with pytest.raises(Conflict, match="is being deleted"):
        send(service, {"a": 1})


def test_labels_whose_time_is_over_are_deleted_and_those_without_answer_counted(service: InferenceService) -> None:
    keep(service, days=7)
    scorer_set(namespace="default", name="digits", scorer="right", kind="accuracy", options={}, actor="test", now=NOON)
    answer(service, "joined")
    send(service, {"joined": 3, "lost": 1})
    join()
    send(service, {"recent": 1}, NOON + timedelta(days=6))
    assert labels_forget(now=NOON + timedelta(days=6, hours=23)) == 0
    assert Score.objects.count() == 1
    assert labels_forget(now=NOON + timedelta(days=7, hours=1)) == 2
    assert [label.request_id for label in Label.objects.all()] == ["recent"]
    assert Kept.objects.get().unmatched == 1
    assert Score.objects.count() == 0


def test_labels_of_a_service_that_keeps_nothing_stay_thirty_days(service: InferenceService) -> None:
    send(service, {"a": 1})
    assert labels_forget(now=NOON + timedelta(days=29)) == 0
    assert labels_forget(now=NOON + timedelta(days=31)) == 1
