"""Requests are counted in one place, each once."""

import ast
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import serving_runtime
from serving_runtime.common.errors import FailureReason, InvalidArgument, Unavailable
from serving_runtime.common.request import InferRequest, OnDone
from serving_runtime.scheduler import counting
from serving_runtime.scheduler.execution.execution import Execution
from serving_runtime.scheduler.job import Job
from serving_runtime.telemetry.statistics import BatchTiming, ModelStatistics

SOURCES = Path(serving_runtime.__file__).parent
PLACES = {
    SOURCES / "scheduler" / "counting.py",
    SOURCES / "telemetry" / "statistics.py",
    SOURCES / "proxy" / "request_counts.py",  # of requests that another server answers
}
RECORDS = {"record_answer", "record_batch", "record_failure", "record_cache_hit"}
COUNTS = {"accepted", "finished"}


def counts(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that count requests: calls of `RECORDS`, and increments of `COUNTS`."""
    for node in ast.walk(tree):
        target = node.func if isinstance(node, ast.Call) else node.target if isinstance(node, ast.AugAssign) else None
        counting_names = RECORDS if isinstance(node, ast.Call) else COUNTS
        if isinstance(target, ast.Attribute) and target.attr in counting_names:
            yield target.lineno


def test_nothing_else_counts_requests() -> None:
    found = [
        f"{file.relative_to(SOURCES)}:{line}"
        for file in sorted(SOURCES.rglob("*.py"))
        if file not in PLACES
        for line in counts(ast.parse(file.read_text()))
    ]
    assert found == [], "call serving_runtime/scheduler/counting.py"


def test_a_count_elsewhere_would_be_found() -> None:
    assert list(counts(ast.parse("x.accepted += 1\nself.statistics.record_failure(a, 1)\nx.others += 1"))) == [1, 2]


class Queue:
    """A scheduler that takes a number of jobs."""

    inline, pending = True, 0

    def __init__(self, room: int) -> None:
        self.room = room

    def submit(self, _job: Job) -> None:
        if not self.room:
            raise Unavailable("full")
        self.room -= 1

    def cancel(self, job: Job) -> None: ...

    def close(self) -> None: ...


def make(request: InferRequest, on_done: OnDone, arrived_ns: int) -> Job:
    if not request.model_name:
        raise InvalidArgument("no model")
    return Job([], 2, None, on_done, arrived_ns)  # type: ignore[arg-type]  # nothing is answered


def test_each_request_is_counted_by_its_outcome() -> None:
    statistics, queue = ModelStatistics(), Queue(4)
    request = InferRequest("m", "", ())
    jobs = [counting.admitted(make, request, print, queue, statistics) for _ in range(4)]
    assert (statistics.accepted, statistics.finished) == (4, 0)
    with pytest.raises(Unavailable):
        counting.admitted(make, request, print, queue, statistics)
    with pytest.raises(InvalidArgument):
        counting.admitted(make, InferRequest("", "", ()), print, queue, statistics)
    counting.refuse(statistics, FailureReason.OTHER)
    counting.wait(statistics)
    assert statistics.inflight == 5
    counting.end_wait(statistics)

    now_ns = time.monotonic_ns()
    answered = Execution(jobs[:2], [[], []], BatchTiming(now_ns, now_ns, now_ns, now_ns))
    failed = Execution(jobs[2:3], [InvalidArgument("no")], None)
    counting.count([answered, failed], statistics)
    assert counting.fail(statistics, FailureReason.CANCELED, now_ns, now_ns + 5) == 5
    assert (statistics.accepted, statistics.finished, statistics.inflight) == (7, 7, 0)
    assert (statistics.successes, statistics.inferences, statistics.executions) == (2, 4, 1)
    assert {reason.value: number for reason, number in statistics.failures.items() if number} == {
        "REJECTED": 1,
        "OTHER": 3,
        "CANCELED": 1,
    }


def test_a_cache_hit_is_a_success_that_runs_nothing() -> None:
    statistics = ModelStatistics()
    job = counting.admitted(make, InferRequest("m", "", ()), print, Queue(1), statistics)
    counting.cache_hit(job, 7, statistics)
    assert (statistics.inflight, statistics.successes, statistics.executions) == (0, 1, 0)
    assert (statistics.cache_hits, statistics.cache_hit_ns) == (1, 7)
