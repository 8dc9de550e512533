"""A real worker and the broker that the settings name: the file system's, or the Redis of `make test`."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from celery.signals import task_postrun
from django.conf import settings

from clusters.services import connection as connecting
from control_plane.celery import app
from deployments import tasks
from deployments.domain.phases import Phase
from deployments.models import InferenceService
from deployments.reconcile import hints
from deployments.turns import sweep
from events.models import Event
from integrations.clusters.base import Observed, Sample
from jobs.services import hints as job_hints
from tests.control_plane._support.workers import working
from tests.deployments._support.ledger import Ledger
from tests.deployments._support.platform import Platform

DEADLINE_S = 60.0


@pytest.fixture
def platform(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Platform:
    """Services on the database, which the worker's threads share, and a fake cluster, which its tasks find."""
    made = Platform()
    monkeypatch.setattr(connecting, "driver_of", lambda _cluster: made.cluster)
    monkeypatch.setattr(sweep.counters, "collect", made.metrics)
    monkeypatch.setattr(job_hints, "_EXPIRES_S", 3600)  # each of them is waited for, however busy the machine is
    return made


@pytest.fixture
def ended(platform: Platform) -> Iterator[threading.Semaphore]:
    """A worker with four threads; released once for each tick that it has ended."""
    for folder in ("queue", "processed", "control"):
        (settings.HOME / "broker" / folder).mkdir(parents=True, exist_ok=True)
    with app.connection_for_write() as connection, app.amqp.queues["celery"](connection).channel as channel:
        channel.queue_purge("celery")  # hints of earlier tests, which nobody took
    done = threading.Semaphore(0)

    def note(task: Any, **_: object) -> None:
        if task.name == tasks.reconcile.name:  # a change sends others too
            done.release()

    task_postrun.connect(note)
    try:
        with working(
            app,
            pool="threads",
            concurrency=4,
            loglevel="INFO",  # of the whole process, from now on: as it is
            shutdown_timeout=DEADLINE_S,
        ):
            yield done
    finally:
        task_postrun.disconnect(note)


def test_a_change_reaches_a_worker(platform: Platform, ended: threading.Semaphore) -> None:
    platform.version(1)
    platform.policy()
    platform.apply()
    assert ended.acquire(timeout=DEADLINE_S)
    assert [desired.service for desired in platform.cluster.applied] == ["digits"]
    assert InferenceService.objects.get().ticked_at is not None


def test_hints_that_come_at_once_tick_a_service_one_after_the_other(
    platform: Platform, ended: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four threads at one service all through a rollout: it ends as with one."""
    platform.live()
    platform.version(2)
    service, ledger = InferenceService.objects.get(), Ledger(platform)
    inside, most, lock, overlap = 0, 0, threading.Lock(), threading.Event()

    def busy(observed: Observed, page_of: object) -> Sequence[Sample]:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        overlap.wait(timeout=0.02)
        with lock:
            inside -= 1
        return platform.metrics(observed)

    monkeypatch.setattr(sweep.counters, "collect", busy)
    monkeypatch.setattr(sweep.timezone, "now", platform.clock)
    platform.start()
    for _ in range(40):
        if platform.rollout().phase == Phase.HEALTHY:
            break
        platform.traffic()
        platform.clock.go_on(2)
        platform.cluster.settle()
        for _ in range(4):
            hints.reconcile_soon(service.pk)
        for _ in range(4):
            assert ended.acquire(timeout=DEADLINE_S)
        ledger.note_recorded()
    assert (platform.rollout().phase, most) == (Phase.HEALTHY, 1)
    ledger.check()
    numbers = list(Event.objects.filter(service=service).order_by("id").values_list("seq", flat=True))
    assert numbers == list(range(1, len(numbers) + 1)), "every event once, none lost"
