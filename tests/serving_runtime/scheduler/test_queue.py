"""The queue serves by level, then by age; what leaves early leaves no trace."""

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.common.errors import Unavailable
from serving_runtime.config.batching import BatchPolicy, QueuePolicy
from serving_runtime.scheduler.batching import take
from serving_runtime.scheduler.job import Job
from serving_runtime.scheduler.queue import JobQueue


def job(priority: int = 0) -> Job:
    made = Job([], 1, None, lambda _result: None, 0)
    made.priority = priority
    return made


def filled(queue: JobQueue, *priorities: int) -> list[Job]:
    jobs = [job(priority) for priority in priorities]
    for entry in jobs:
        queue.push(entry)
    return jobs


def test_the_oldest_comes_first() -> None:
    queue = JobQueue()
    first, second, third = filled(queue, 0, 0, 0)
    assert queue.head(2) == [first, second]
    assert queue.pop(2) == [first, second]
    assert queue.pop(5) == [third]
    assert len(queue) == 0


def test_a_lower_level_is_served_first_whenever_it_came() -> None:
    queue = JobQueue({1: QueuePolicy(), 2: QueuePolicy()})
    late, early = filled(queue, 2, 1)
    assert queue.head(9) == [early, late]
    assert queue.pop(9) == [early, late]


def test_a_discarded_job_is_neither_shown_nor_counted_nor_taken() -> None:
    queue = JobQueue()
    first, second, third = filled(queue, 0, 0, 0)
    queue.discard(second)
    assert len(queue) == 2
    assert queue.head(3) == [first, third]
    queue.discard(first)
    assert queue.pop(3) == [third]


def test_a_delayed_job_comes_after_the_punctual_ones_of_its_level() -> None:
    queue = JobQueue({1: QueuePolicy(), 2: QueuePolicy()})
    first, second, low = filled(queue, 1, 1, 2)
    queue.delay(first)
    assert queue.head(9) == [second, first, low]
    assert queue.pop(9) == [second, first, low]


def test_a_full_level_refuses_until_one_leaves() -> None:
    queue = JobQueue({1: QueuePolicy(max_queue_size=2), 2: QueuePolicy()})
    first, _ = filled(queue, 1, 1)
    with pytest.raises(Unavailable, match="Exceeds maximum queue size of 2"):
        queue.push(job(1))
    queue.push(job(2))
    queue.discard(first)
    queue.push(job(1))
    assert len(queue) == 3


WAITING = st.tuples(
    st.integers(1, 2), st.integers(1, 4), st.sampled_from("ab"), st.sampled_from(["stays", "goes", "is late"])
)
LEVELS = MappingProxyType({1: QueuePolicy(), 2: QueuePolicy()})


@given(st.lists(WAITING, min_size=1, max_size=12), st.integers(4, 9))
def test_joined_jobs_are_those_that_a_batch_takes_that_waits_for_nothing(
    waiting: list[tuple[int, int, str, str]], max_rows: int
) -> None:
    queue = JobQueue(LEVELS)
    for priority, rows, key, fate in waiting:
        entry = Job([], rows, key, lambda _result: None, 0)
        entry.priority = priority
        queue.push(entry)
        if fate == "goes":
            queue.discard(entry)
        elif fate == "is late":
            queue.delay(entry)
    policy = BatchPolicy(max_rows, frozenset(), 0, 2, 1, LEVELS)
    while head := queue.head(len(waiting)):
        alike = next((i for i, entry in enumerate(head) if entry.shape_key != head[0].shape_key), len(head))
        expected = head[: take([entry.rows for entry in head[:alike]], 0, policy)]
        before = len(queue)
        assert queue.pop_joined(max_rows) == expected
        assert len(queue) == before - len(expected)
        assert not any(entry.waiting for entry in expected)
    assert len(queue) == 0
    assert not any(level.size for level in queue._levels.values())
