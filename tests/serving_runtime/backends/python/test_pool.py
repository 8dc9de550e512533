"""Workers that end are started again, at once and then ever later; meanwhile others answer, or requests are refused."""

import threading
from collections.abc import Callable

import pytest

from serving_runtime.backends.python.pool import Pool, delay_s
from serving_runtime.common.errors import ModelError, Unavailable
from tests.serving_runtime.backends.python.python_repository import until


class FakeWorker:
    def __init__(self) -> None:
        self.load = 0
        self.alive = True
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


class Start:
    """Starts workers, and fails while it is told to."""

    def __init__(self) -> None:
        self.fails = False
        self.tries = 0
        self.tried = threading.Event()

    def __call__(self, on_end: Callable[[FakeWorker], None]) -> FakeWorker:
        self.tries += 1
        if self.fails:
            self.tried.set()
            raise ModelError("initialize failed")
        return FakeWorker()


def test_delays_grow_to_a_minute() -> None:
    assert [delay_s(failures) for failures in (0, 1, 2, 3, 4, 9, 100)] == [0, 0, 1, 2, 4, 60, 60]


def test_who_has_least_to_do_is_lent() -> None:
    pool = Pool(Start(), "model 'm'")
    pool.open(2)
    with pool.lent() as one, pool.lent() as other:
        assert one is not other
    pool.close()
    assert one.stopped
    assert other.stopped


def test_a_worker_that_ends_has_another_in_its_place_and_requests_wait_for_it() -> None:
    pool = Pool(Start(), "model 'm'")
    pool.open(1)
    (first,) = pool.workers
    pool.ended(first)
    with pool.lent() as second:
        assert second is not first
    until(lambda: first.stopped)
    pool.close()


def test_requests_are_refused_while_the_only_worker_waits_to_be_started() -> None:
    start = Start()
    pool = Pool(start, "model 'm' version 1")
    pool.open(1)
    start.fails = True
    pool.ended(pool.workers[0])
    assert start.tried.wait(60)
    with pytest.raises(Unavailable, match="model 'm' version 1: its worker process has ended"), pool.lent():
        pass
    assert pool.problem
    pool.close()


def test_where_one_does_not_start_none_stays() -> None:
    start = Start()
    made: list[FakeWorker] = []

    def second_fails(on_end: Callable[[FakeWorker], None]) -> FakeWorker:
        start.fails = bool(made)
        made.append(start(on_end))
        return made[-1]

    with pytest.raises(ModelError, match="initialize failed"):
        Pool(second_fails, "model 'm'").open(2)
    assert [worker.stopped for worker in made] == [True]
