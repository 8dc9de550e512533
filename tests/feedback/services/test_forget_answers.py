"""Kept answers and what belongs to them are deleted on time, with few queries, and no others are."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from feedback.models import Answer, HourlyQuality, Kept, Label, Score, ServiceScorer
from feedback.services import answers
from feedback.services.answers import answers_forget, answers_stop
from tests.deployments._support.platform import Platform
from tests.feedback._support.keeping import SERVICE, Keeping

DAYS = timedelta(days=30)


@pytest.fixture
def keeping(platform: Platform) -> Keeping:
    return Keeping(platform)


def label(keeping: Keeping, request_id: str) -> None:
    now = keeping.platform.clock()
    Label.objects.create(
        service=keeping.service(),
        request_id=request_id,
        value=3,
        given_at=now,
        given_by="alice",
        received_at=now,
        joined_at=now,
    )


def scorer(keeping: Keeping) -> ServiceScorer:
    now = keeping.platform.clock()
    return ServiceScorer.objects.create(
        service=keeping.service(), name="right", kind="accuracy", created_at=now, created_by="alice"
    )


def score(by: ServiceScorer, request_id: str) -> None:
    now = by.created_at
    of = {"request_id": request_id, "revision": "digits-00001", "loss": 0.0}
    Score.objects.create(scorer=by, **of, answered_at=now, labelled_at=now, scored_at=now)


def test_answers_go_on_time_with_their_labels_and_scores(keeping: Keeping) -> None:
    by = scorer(keeping)
    keeping.answer("old")
    at = Answer.objects.get().at
    keeping.platform.clock.go_on(3600)
    keeping.answer("new")
    for name in ("old", "new"):
        label(keeping, name)
        score(by, name)
    HourlyQuality.objects.create(scorer=by, revision="digits-00001", hour=at, scores=1)
    assert answers_forget(now=at + DAYS) == 0
    assert answers_forget(now=at + DAYS + timedelta(seconds=1)) == 1
    assert keeping.ids() == ["new"]
    assert list(Label.objects.values_list("request_id", flat=True)) == ["new"]
    assert list(Score.objects.values_list("request_id", flat=True)) == ["new"]
    assert HourlyQuality.objects.exists()
    assert (keeping.row().rows, keeping.row().bytes) == (1, Answer.objects.get().bytes)


def test_both_answers_to_a_copied_request_go(platform: Platform) -> None:
    keeping = Keeping(platform)
    platform.version(2)
    platform.start()
    platform.turn()
    keeping.record(*(keeping.exchange("a", f"digits-0000{number}") for number in (1, 2)))
    platform.turn()
    assert answers_forget(now=platform.clock() + DAYS) == 2
    assert (keeping.row().rows, keeping.row().bytes) == (0, 0)


def test_fewer_days_count_for_what_is_stored(keeping: Keeping) -> None:
    keeping.answer("a")
    keeping.keep(days=2)
    assert answers_forget(now=keeping.platform.clock() + timedelta(days=1)) == 0
    assert answers_forget(now=keeping.platform.clock() + timedelta(days=3)) == 1


def test_what_was_stopped_stays_until_its_time(keeping: Keeping) -> None:
    keeping.answer("a")
    answers_stop(**SERVICE, actor="bob", now=keeping.platform.clock())
    keeping.answer("b")
    answers_forget(now=keeping.platform.clock())
    assert keeping.ids() == ["a"]
    answers_forget(now=keeping.platform.clock() + DAYS + timedelta(hours=1))
    assert not Kept.objects.exists()


def test_what_is_kept_again_is_not_deleted_as_stopped(keeping: Keeping) -> None:
    answers_stop(**SERVICE, actor="bob", now=keeping.platform.clock())
    keeping.keep(share_percent=50)
    answers_forget(now=keeping.platform.clock())
    assert keeping.row().share_percent == 50


def many(keeping: Keeping, number: int, **changed: Any) -> None:
    at = keeping.platform.clock()
    row = {"service": keeping.service(), "revision": "digits-00001", "version": 1, "bytes": 300, **changed}
    ids = [f"r{each}" for each in range(number)]
    Answer.objects.bulk_create(Answer(request_id=each, at=at, **row) for each in ids)
    labels = {"value": 1, "given_at": at, "given_by": "a", "received_at": at, "joined_at": at}
    Label.objects.bulk_create(Label(service=row["service"], request_id=each, **labels) for each in ids)
    by = scorer(keeping)
    times = {"answered_at": at, "labelled_at": at, "scored_at": at}
    Score.objects.bulk_create(
        Score(scorer=by, request_id=each, revision=row["revision"], loss=0, **times) for each in ids
    )
    Kept.objects.update(rows=number, bytes=300 * number)


def statements(now: datetime) -> list[str]:
    with CaptureQueriesContext(connection) as counted:
        answers_forget(now=now)
    return [query["sql"] for query in counted if not query["sql"].startswith(("SAVEPOINT", "RELEASE"))]


def test_few_statements_delete_many_answers_in_batches(keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_BATCH", 400)
    many(keeping, 1000)
    done = statements(keeping.platform.clock() + DAYS + timedelta(seconds=1))
    assert not any(table.objects.exists() for table in (Answer, Label, Score))
    assert (keeping.row().rows, keeping.row().bytes) == (0, 0)
    assert len(done) == 2 + 3 * 5  # what is kept, its scorers; of each batch the rows, three deletions, the sums
    assert not [each for each in done if each.startswith("DELETE") and " IN (" not in each]


def test_a_call_ends_after_some_batches_and_the_next_goes_on(keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_BATCH", 10)
    monkeypatch.setattr(answers, "_BATCHES", 3)
    many(keeping, 50)
    now = keeping.platform.clock() + DAYS + timedelta(seconds=1)
    assert [answers_forget(now=now) for _ in range(3)] == [30, 20, 0]


def test_nothing_is_scanned(keeping: Keeping) -> None:
    """Each statement of a call that deletes finds its rows by an index."""
    many(keeping, 300)
    now = keeping.platform.clock() + DAYS + timedelta(seconds=1)
    tables = ("feedback_answer", "feedback_label", "feedback_score")
    found = [each for each in statements(now) if any(f'"{table}"' in each for table in tables)]
    assert len(found) >= 4
    plans = [plan(each) for each in found if each.startswith(("SELECT", "DELETE"))]
    assert not [each for each in plans if "SCAN feedback_" in each or "Seq Scan on feedback_" in each]


def plan(statement: str) -> str:
    """Return how the database would execute a statement."""
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")  # tables of a test are small
        cursor.execute(explain + statement)
        return "\n".join(" ".join(map(str, row)) for row in cursor.fetchall())
