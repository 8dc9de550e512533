"""What takes long goes through the thread; what comes behind it waits, and is handed on in the order it came."""

import asyncio
import threading

import pytest

from serving_runtime.common import side_thread
from serving_runtime.common.errors import InvalidArgument, ServingError
from serving_runtime.common.side_thread import InOrder
from tests.serving_runtime._support.engines import until

LONG = 10
"""Items of so much and more take long."""

WRONG, BROKEN = 13, 14


class Taker:
    """Takes what is handed on: items, what became of them, and the threads in which they were worked on."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int | str]] = []
        self.threads: list[threading.Thread] = []
        self.gate = threading.Event()
        self.gate.set()
        self.answers: InOrder[int] = InOrder(lambda item: item >= LONG, self.work, self.take)

    def work(self, item: int) -> int:
        self.threads.append(threading.current_thread())
        if item >= LONG:
            assert self.gate.wait(20)
        if item in (WRONG, -WRONG):
            raise InvalidArgument("wrong")
        if item == BROKEN:
            raise ZeroDivisionError
        return 2 * item

    def take(self, item: int, found: int | ServingError) -> None:
        assert threading.current_thread() is threading.main_thread()
        self.taken.append((item, found.message if isinstance(found, ServingError) else found))


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([1, 2, 3], id="short ones"),
        pytest.param([11, 12, 15], id="long ones"),
        pytest.param([1, 11, 2, 3, 12, 4, 15, 5, 6], id="short ones behind long ones"),
        pytest.param([11, WRONG, 1, -WRONG, 12, WRONG, 2], id="errors between them"),
    ],
)
async def test_items_are_handed_on_in_the_order_they_came(items: list[int]) -> None:
    taker = Taker()
    for item in items:
        taker.answers.take(item)
    await until(lambda: len(taker.taken) == len(items), "all are handed on")
    assert taker.taken == [(item, "wrong" if abs(item) == WRONG else 2 * item) for item in items]
    assert [thread is threading.main_thread() for thread in taker.threads] == [item < LONG for item in items]
    assert not taker.answers.busy


async def test_what_comes_while_a_long_one_is_worked_on_waits_for_it() -> None:
    taker = Taker()
    taker.gate.clear()
    taker.answers.take(11)
    taker.answers.take(1)
    await until(lambda: bool(taker.threads), "all are handed on")
    assert (taker.taken, taker.answers.busy) == ([], True)
    taker.gate.set()
    await until(lambda: not taker.answers.busy, "all are handed on")
    assert taker.taken == [(11, 22), (1, 2)]


async def test_a_mistake_of_ours_is_an_error_of_its_item_alone(caplog: pytest.LogCaptureFixture) -> None:
    taker = Taker()
    for item in (11, BROKEN, 1, 12):
        taker.answers.take(item)
    await until(lambda: len(taker.taken) == 4, "all are handed on")
    assert taker.taken == [(11, 22), (BROKEN, "internal error"), (1, 2), (12, 24)]
    assert "ZeroDivisionError" in caplog.text


async def test_several_lines_share_the_thread_and_keep_each_its_order() -> None:
    takers = [Taker() for _ in range(5)]
    items = [11, 1, 12, 2]
    for item in items:
        for taker in takers:
            taker.answers.take(item)
    await until(lambda: all(len(taker.taken) == len(items) for taker in takers), "all are handed on")
    assert all([item for item, _ in taker.taken] == items for taker in takers)
    assert len({thread for taker in takers for thread in taker.threads} - {threading.main_thread()}) == 1


@pytest.mark.parametrize("brought", [3, 13 + LONG], ids=["a short one", "a long one"])
async def test_what_comes_as_another_is_handed_on_is_behind_those_that_wait(brought: int) -> None:
    """A model goes on once its answer is written, and may answer at once."""
    taker = Taker()

    def take(item: int, found: int | ServingError) -> None:
        taker.take(item, found)
        if item in (11, 1):
            taker.answers.take(brought + item % LONG)

    taker.answers = InOrder(lambda item: item >= LONG, taker.work, take)
    for item in (11, 1, 2, 12):
        taker.answers.take(item)
    await until(lambda: len(taker.taken) == 6, "all are handed on")
    assert [item for item, _ in taker.taken] == [11, 1, 2, 12, brought + 1, brought + 1]
    assert not taker.answers.busy


async def test_work_that_waits_is_given_up_with_its_future() -> None:
    gate, done = threading.Event(), []
    first = side_thread.submitted(lambda: gate.wait(20))
    second = side_thread.submitted(lambda: done.append(1))
    second.cancel()
    await asyncio.sleep(0)  # the pool learns of it in a turn of the loop
    await asyncio.sleep(0)
    gate.set()
    assert await first
    await side_thread.submitted(lambda: None)
    assert done == []
