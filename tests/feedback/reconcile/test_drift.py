"""Drift of a service's requests and answers, from what taps recorded to the event."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from events.models import Event
from feedback.models import DriftBlock, DriftFeature, DriftHour
from feedback.reconcile.first_values import first_values
from feedback.services.answers import answers_stop
from tests.deployments._support.platform import Platform
from tests.feedback._support.watched import CANARY, EVEN, OF_CLASS, OF_MEAN, OF_SCORE, OFTEN_3, SERVICE, STABLE, Watched


@pytest.fixture
def watched(platform: Platform) -> Watched:
    return Watched(platform)


def events() -> list[str]:
    return list(Event.objects.filter(kind="DataDriftDetected").order_by("pk").values_list("message", flat=True))


def test_a_service_that_keeps_nothing_is_not_watched(watched: Watched) -> None:
    answers_stop(**SERVICE, actor="alice", now=watched.platform.clock())
    watched.feed(minutes=3)
    assert not DriftBlock.objects.exists()
    assert not DriftFeature.objects.exists()


def test_first_values_fix_the_bins_and_are_not_kept(watched: Watched) -> None:
    watched.feed()
    assert watched.row().bins is None
    assert len(first_values(watched.block())[OF_MEAN]) == 120
    watched.feed(minutes=4)
    assert first_values(watched.block()) == {}
    assert sorted(watched.bins()["classes"]) == [str(number) for number in range(10)]
    assert len(watched.bins(OF_MEAN)["edges"]) == 11
    assert set(DriftFeature.objects.values_list("name", flat=True)) == {
        OF_CLASS,
        OF_SCORE,
        OF_MEAN,
        "deviation of image",
        "share of zeros of image",
    }


def test_a_week_of_answers_is_the_reference(watched: Watched) -> None:
    watched.feed(minutes=24, rows=240)
    assert watched.state()["reference"] is None
    watched.platform.clock.go_on(timedelta(days=7).total_seconds())
    watched.feed(rows=240)
    reference = watched.state()["reference"]
    assert reference["rows"] == 22 * 240
    assert watched.row().evidence == 0


def test_same_traffic_is_no_drift(watched: Watched) -> None:
    watched.learn()
    watched.feed(minutes=30)
    assert watched.state()["reference"] is not None
    assert events() == []
    assert watched.row().alarm_at is None


def test_a_class_that_is_answered_more_often_is_an_event_once(watched: Watched) -> None:
    watched.learn()
    watched.feed(minutes=3)
    watched.feed(shares=OFTEN_3, minutes=15)
    said = [message for message in events() if "class 3" in message]
    assert len(said) == 1
    assert said[0].startswith(f"the share of class 3 in answers of {STABLE} is ")
    assert said[0].endswith(" %")
    assert watched.row().sentence == said[0]
    assert watched.row().alarm_at is not None
    assert watched.row(OF_MEAN).alarm_at is None


def test_inputs_that_moved_are_an_event(watched: Watched) -> None:
    watched.learn()
    watched.feed(moved=0.3, minutes=10)
    assert [message for message in events() if f"of the {OF_MEAN} in requests to {STABLE}" in message]
    assert watched.row().alarm_at is None


def test_a_turn_asks_three_times_and_not_for_the_large_states(watched: Watched) -> None:
    watched.feed(minutes=8)
    watched.bring(*(watched.exchange(EVEN, revision=STABLE, moved=0, rows=4) for _ in range(20)))
    with CaptureQueriesContext(connection) as counted:
        watched.platform.turn()
    asked = [query["sql"] for query in counted if "feedback_drift" in query["sql"]]
    assert len(asked) == 3  # the open block; the bins of the features; the block again
    assert not [sql for sql in asked if '"state"' in sql]
    with CaptureQueriesContext(connection) as counted:
        watched.platform.turn()
    assert not [query["sql"] for query in counted if "feedback_drift" in query["sql"]]


def test_hours_have_the_shapes(watched: Watched) -> None:
    watched.feed(minutes=20)
    hours = DriftHour.objects.filter(revision=STABLE)
    assert 1 <= hours.count() <= 2
    assert sum(sum(row.counts[OF_CLASS]) for row in hours) == 15 * 120


def test_a_canary_is_compared_in_the_same_time(watched: Watched) -> None:
    watched.learn()
    watched.platform.version(2)
    watched.platform.start("2")
    watched.feed(canary=OFTEN_3, minutes=8)
    versus = watched.state()["versus"]
    assert versus["canary"] == CANARY
    assert sum(versus["of_canary"]) >= 5 * 120
    assert events() == []


def test_a_new_version_has_a_reference_of_its_own_answers(watched: Watched) -> None:
    watched.learn()
    watched.platform.promoted(2)
    watched.bring(watched.exchange((0.5, 0.5), revision=CANARY, moved=0, rows=60))
    watched.platform.turn()
    assert watched.row().bins is None
    assert watched.state(OF_MEAN)["reference"] is not None
