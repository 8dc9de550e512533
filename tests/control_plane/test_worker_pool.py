"""Long tasks have threads of their own in a real worker: they hold up no sweep."""

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest
from celery import Celery
from celery.concurrency import get_implementation
from prometheus_client import REGISTRY

from control_plane.celery import app
from control_plane.worker_pool import Lane, TaskPool
from tests.control_plane._support.workers import working
from tests.nets._support.modules import modules

DEADLINE_S = 30.0
SHORT = {"deployments.tasks.reconcile", "deployments.tasks.sweep", "deployments.tasks.sweep_cluster"}
"""Beside the sweeps that send hints alone."""


class Tasks:
    """An application with a long task, of which two run at a time, and a short one."""

    def __init__(self) -> None:
        self.app = Celery("lanes", broker="memory://lanes", set_as_current=False)
        self.app.conf.update(
            task_annotations={"long": {"threads": 2}},
            task_ignore_result=True,
            broker_transport_options={"polling_interval": 0.01},
        )
        self.end, self.begun, self.short = threading.Event(), threading.Semaphore(0), threading.Semaphore(0)
        self.count, self.lock = 0, threading.Lock()

        @self.app.task(name="long", shared=False)
        def long() -> None:
            with self.lock:
                self.count += 1
            self.begun.release()
            assert self.end.wait(DEADLINE_S)

        @self.app.task(name="short", shared=False)
        def short() -> None:
            self.short.release()

        self.long_task, self.short_task = long, short


@pytest.fixture
def tasks() -> Iterator[Tasks]:
    """A worker of one thread for short tasks; long ones end when the test does."""
    made = Tasks()
    with working(made.app, pool="threads", concurrency=1, loglevel="INFO", shutdown_timeout=DEADLINE_S):
        yield made
        made.end.set()


def dropped() -> float:
    return REGISTRY.get_sample_value("fairlead_tasks_dropped_total", {"task": "long"}) or 0.0


def test_short_tasks_run_while_the_threads_of_a_long_one_are_busy_and_many_of_it_wait(tasks: Tasks) -> None:
    before = dropped()
    for _ in range(100):  # many more than a worker of one thread may hold unacknowledged
        tasks.long_task.delay()
    assert tasks.begun.acquire(timeout=DEADLINE_S)
    assert tasks.begun.acquire(timeout=DEADLINE_S)
    for _ in range(20):
        tasks.short_task.delay()
        assert tasks.short.acquire(timeout=DEADLINE_S)
    assert (tasks.count, dropped() - before) == (2, 90), "two run, eight wait, the others are dropped"
    tasks.end.set()
    for _ in range(8):
        assert tasks.begun.acquire(timeout=DEADLINE_S)
    tasks.long_task.delay()
    assert tasks.begun.acquire(timeout=DEADLINE_S), "the threads are free again"


def test_a_lane_that_stops_waits_for_what_runs_and_drops_what_waits() -> None:
    lane, end, begun = Lane("long", 2), threading.Event(), threading.Semaphore(0)

    def run() -> None:
        begun.release()
        assert end.wait(DEADLINE_S)

    futures = [lane.submit(run) for _ in range(5)]
    assert begun.acquire(timeout=DEADLINE_S)
    assert begun.acquire(timeout=DEADLINE_S)
    stopping = threading.Thread(target=lane.stop, kwargs={"wait": True})
    stopping.start()
    for waiting in futures[2:]:
        assert waiting is not None
        with pytest.raises(CancelledError):
            waiting.result(DEADLINE_S)
    assert stopping.is_alive()
    end.set()
    stopping.join(DEADLINE_S)
    assert [each.cancelled() for each in futures if each] == [False, False, True, True, True]


def test_a_worker_with_threads_has_this_pool() -> None:
    assert get_implementation("threads") is TaskPool


def test_all_tasks_but_sweeps_and_ticks_have_threads_of_their_own() -> None:
    app.loader.import_default_modules()
    rooms = {module.room for module in modules().values()}
    ours = {name: task for name, task in app.tasks.items() if task.__module__.partition(".")[0] in rooms}
    shared = {name for name, task in ours.items() if getattr(task, "threads", None) is None}
    assert shared == SHORT | {name for name in ours if name.rpartition(".")[2].startswith("sweep")}
    assert all(task.threads > 0 for name, task in ours.items() if name not in shared)
