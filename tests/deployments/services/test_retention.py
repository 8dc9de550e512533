"""What is forgotten after a while, and what is not."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from clusters.models import Cluster
from deployments import tasks
from deployments.domain.phases import Phase
from deployments.models import AnalysisPoint, AnalysisRun, ComparisonRun, Rollout
from deployments.reconcile.participants.evidence import run_keep
from deployments.selectors import rollout_detail
from deployments.services.retention import KEPT_EVENTS, comparisons_forget, events_forget, measurements_forget
from events.models import Event
from tests import scenes
from tests.comparisons import compared_shadow

pytestmark = pytest.mark.django_db
LONG = timedelta(days=90)


def add_events(count: int, *, days_ago: float, **owner: object) -> None:
    (row,) = owner.values()
    at = timezone.now() - timedelta(days=days_ago)
    first = row.event_seq + 1  # type: ignore[attr-defined]
    Event.objects.bulk_create(
        Event(seq=seq, at=at, kind="Test", message="it happened", **owner) for seq in range(first, first + count)
    )
    row.event_seq += count  # type: ignore[attr-defined]
    row.save(update_fields=["event_seq"])  # type: ignore[attr-defined]


@pytest.fixture
def ended() -> Rollout:
    """A rollout that ended long ago, with an analysis run."""
    row = scenes.rollout(scenes.service())
    scenes.move(row, phase=Phase.HEALTHY)
    Rollout.objects.update(finished_at=timezone.now() - timedelta(days=91))
    AnalysisRun.objects.update(measurements=[scenes.MEASUREMENT], totals={"since": 1.0}, message="all was well")
    assert AnalysisRun.objects.exists()
    return row


def test_old_events_go_but_for_the_newest_of_each_owner() -> None:
    service, cluster = scenes.service(), Cluster.objects.get()
    service.refresh_from_db()
    add_events(700, days_ago=91, service=service)
    add_events(5, days_ago=1, service=service)
    add_events(103, days_ago=91, cluster=cluster)
    newest, newest_of_cluster = service.event_seq, cluster.event_seq
    fresh = Event.objects.filter(at__gte=timezone.now() - LONG, service=service, seq__lte=700).count()

    deleted = events_forget(now=timezone.now(), older_than=LONG)

    assert deleted == (newest - KEPT_EVENTS - fresh) + (newest_of_cluster - KEPT_EVENTS)
    left = set(Event.objects.filter(service=service).values_list("seq", flat=True))
    assert set(range(newest - KEPT_EVENTS + 1, newest + 1)) <= left
    assert Event.objects.filter(cluster=cluster).count() == KEPT_EVENTS
    assert events_forget(now=timezone.now(), older_than=LONG) == 0


def test_measurements_of_an_ended_rollout_go_and_its_verdicts_stay(ended: Rollout) -> None:
    run_keep(run=AnalysisRun.objects.get(), now=timezone.now())
    before = rollout_detail(rollout_id=ended.pk, now=timezone.now()).analysis_runs
    assert measurements_forget(now=timezone.now(), older_than=LONG) == len(before)
    after = rollout_detail(rollout_id=ended.pk, now=timezone.now()).analysis_runs
    assert [run.measurements for run in after] == [()] * len(before)
    assert not AnalysisPoint.objects.exists()
    assert [(run.verdict, run.message, run.requests) for run in after] == [
        (run.verdict, run.message, run.requests) for run in before
    ]
    assert measurements_forget(now=timezone.now(), older_than=LONG) == 0


@pytest.mark.parametrize("days_ago", [None, 89], ids=["that goes on", "that ended lately"])
def test_measurements_stay_of_a_rollout(ended: Rollout, days_ago: int | None) -> None:
    at = None if days_ago is None else timezone.now() - timedelta(days=days_ago)
    Rollout.objects.update(finished_at=at)
    assert measurements_forget(now=timezone.now(), older_than=LONG) == 0
    assert AnalysisRun.objects.exclude(measurements=[]).exists()


def test_comparisons_of_an_ended_rollout_go_with_what_clients_sent() -> None:
    compared_shadow(scenes.service(), count=3)
    now = timezone.now()
    assert comparisons_forget(now=now, older_than=LONG) == 0
    Rollout.objects.update(finished_at=now - timedelta(days=91))
    assert comparisons_forget(now=now, older_than=LONG) == 1
    assert not ComparisonRun.objects.exists()


def test_requests_that_wait_to_be_compared_go_within_the_hour() -> None:
    compared_shadow(scenes.service(), count=3)
    now = timezone.now()
    comparisons_forget(now=now + timedelta(minutes=59), older_than=LONG)
    assert bytes(ComparisonRun.objects.get().waiting)
    comparisons_forget(now=now + timedelta(minutes=61), older_than=LONG)
    assert not bytes(ComparisonRun.objects.get().waiting)
    assert ComparisonRun.objects.get().report["pairs"] == 3


def test_the_task_goes_by_the_settings(ended: Rollout, settings: Settings) -> None:
    settings.RETAIN_MEASUREMENTS = timedelta(days=365)
    tasks.forget()
    assert AnalysisRun.objects.exclude(measurements=[]).exists()
    settings.RETAIN_MEASUREMENTS = timedelta(days=1)
    tasks.forget()
    assert not AnalysisRun.objects.exclude(measurements=[]).exists()
