"""A request's id goes with its hints to the worker, and no further."""

import queue
from collections.abc import Iterator

import pytest
from celery import Celery

from common.http import request_id
from control_plane.monitoring import tracing
from tests.control_plane._support.workers import working


@pytest.fixture(scope="module")
def seen() -> "queue.Queue[tuple[str, str]]":
    """What the tasks saw: (task, request id)."""
    return queue.Queue()


@pytest.fixture(scope="module")
def worker(seen: "queue.Queue[tuple[str, str]]") -> Iterator[Celery]:
    """A worker in a thread with a broker in memory; its task `outer` sends `inner`."""
    assert tracing is not None
    app = Celery("tracing-test", broker="memory://", set_as_current=False)
    app.conf.task_ignore_result = True

    @app.task(name="inner")
    def inner() -> None:
        seen.put(("inner", request_id.current()))

    @app.task(name="outer")
    def outer() -> None:
        seen.put(("outer", request_id.current()))
        inner.delay()

    with working(app, pool="solo", shutdown_timeout=60):
        yield app


@pytest.mark.parametrize(
    ("during", "expected"),
    [
        pytest.param("order-66", "order-66", id="within a request"),
        pytest.param(None, "", id="outside of one, right after one"),
    ],
)
def test_a_task_has_the_id_of_the_request_that_sent_it_and_what_it_sends_has_none(
    worker: Celery, seen: "queue.Queue[tuple[str, str]]", during: str | None, expected: str
) -> None:
    token = request_id.begin(during) if during else None
    try:
        worker.send_task("outer")
    finally:
        if token is not None:
            request_id.end(token)
    assert [seen.get(timeout=60), seen.get(timeout=60)] == [("outer", expected), ("inner", "")]
    assert request_id.current() == ""
