"""The queue serves by level, then by age; what leaves early leaves no trace."""

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.common.errors import Overloaded
from serving_runtime.config.batching import QueuePolicy
from serving_runtime.scheduler.job import Job
from serving_runtime.scheduler.queue import JobQueue


def job(priority: int = 0, caller: bytes = b"") -> Job:
    made = Job([], 1, None, lambda _result: None, 0)
    made.priority = priority
    made.caller = caller
    return made


def filled(queue: JobQueue, *priorities: int) -> list[Job]:
    jobs = [job(priority) for priority in priorities]
    for entry in jobs:
        queue.push(entry)
    return jobs


def test_the_oldest_comes_first() -> None:
    queue = JobQueue()
    first, second, third = filled(queue, 0, 0, 0)
    assert list(queue) == [first, second, third]
    assert queue.pop(2) == [first, second]
    assert queue.pop(5) == [third]
    assert len(queue) == 0


def test_a_lower_level_is_served_first_whenever_it_came() -> None:
    queue = JobQueue({1: QueuePolicy(), 2: QueuePolicy()})
    late, early = filled(queue, 2, 1)
    assert list(queue) == [early, late]
    assert queue.pop(9) == [early, late]


def test_a_discarded_job_is_neither_shown_nor_counted_nor_taken() -> None:
    queue = JobQueue()
    first, second, third = filled(queue, 0, 0, 0)
    queue.discard(second)
    assert len(queue) == 2
    assert list(queue) == [first, third]
    queue.discard(first)
    assert queue.pop(3) == [third]


def test_a_delayed_job_comes_after_the_punctual_ones_of_its_level() -> None:
    queue = JobQueue({1: QueuePolicy(), 2: QueuePolicy()})
    first, second, low = filled(queue, 1, 1, 2)
    queue.delay(first)
    assert list(queue) == [second, first, low]
    assert queue.pop(9) == [second, first, low]


def test_a_full_level_refuses_until_one_leaves() -> None:
    queue = JobQueue({1: QueuePolicy(max_queue_size=2), 2: QueuePolicy()})
    first, _ = filled(queue, 1, 1)
    with pytest.raises(Overloaded, match="Exceeds maximum queue size of 2"):
        queue.push(job(1))
    queue.push(job(2))
    queue.discard(first)
    queue.push(job(1))
    assert len(queue) == 3


def test_the_longest_queue_of_a_full_level_makes_room_for_another_caller() -> None:
    queue = JobQueue({1: QueuePolicy(max_queue_size=3), 2: QueuePolicy()})
    greedy = [job(1, b"greedy") for _ in range(3)]
    assert [queue.push(entry) for entry in greedy] == [None] * 3
    low = job(2, b"polite")
    queue.push(low)
    polite = job(1, b"polite")
    assert queue.push(polite) is greedy[2]
    assert not greedy[2].waiting
    assert len(queue) == 4
    for caller in (b"greedy", b"polite"):  # 2 and 1 of 3: neither has so many that another one would be fairer
        with pytest.raises(Overloaded, match="Exceeds maximum queue size of 3"):
            queue.push(job(1, caller))
    assert set(queue.pop(3)) == {greedy[0], greedy[1], polite}
    assert queue.pop(3) == [low]


def test_delayed_jobs_make_room_too() -> None:
    queue = JobQueue({1: QueuePolicy(max_queue_size=3)})
    greedy = [job(1, b"greedy") for _ in range(3)]
    for entry in greedy:
        queue.push(entry)
        queue.delay(entry)
    polite = job(1, b"polite")
    assert queue.push(polite) is greedy[2]
    with pytest.raises(Overloaded):
        queue.push(job(1, b"greedy"))
    assert queue.pop(9) == [polite, greedy[0], greedy[1]]
    assert len(queue) == 0


WAITING = st.tuples(
    st.integers(1, 2), st.sampled_from([b"a", b"b", b"c"]), st.sampled_from(["stays", "goes", "is late"])
)
LEVELS = MappingProxyType({1: QueuePolicy(), 2: QueuePolicy()})


@given(st.lists(WAITING, max_size=12), st.lists(st.integers(0, 5), max_size=6))
def test_whatever_left_early_the_first_are_taken_out(waiting: list[tuple[int, bytes, str]], counts: list[int]) -> None:
    queue = JobQueue(LEVELS)
    for priority, caller, fate in waiting:
        entry = job(priority, caller)
        queue.push(entry)
        if fate == "goes":
            queue.discard(entry)
        elif fate == "is late":
            queue.delay(entry)
    for count in (*counts, len(waiting)):
        before = list(queue)
        assert queue.pop(count) == before[:count]
        assert list(queue) == before[count:]
        assert len(queue) == len(before[count:])
        assert not any(entry.waiting for entry in before[:count])
    assert not any(level.size or level.late for level in queue._levels.values())
