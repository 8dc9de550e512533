"""A few start at a time; each of the others has its turn."""

import asyncio

import pytest

from integrations.clusters.local.agent.replicas.start_limit import Starts, Turn, most_at_once

pytestmark = pytest.mark.anyio


async def _asked(starts: Starts, *, is_new: bool = True) -> "asyncio.Task[Turn]":
    task = asyncio.create_task(starts.turn(is_new=is_new))
    await asyncio.sleep(0)
    return task


async def test_so_many_at_once_and_the_next_when_one_ends() -> None:
    starts = Starts(2)
    first, _second, third = [await _asked(starts) for _ in range(3)]
    assert [first.done(), third.done()] == [True, False]

    with await first:
        pass
    await asyncio.wait_for(third, 5)


async def test_one_that_served_goes_before_the_new_ones_which_keep_their_order() -> None:
    starts = Starts(1)
    turn = await starts.turn(is_new=True)
    new, newer = await _asked(starts), await _asked(starts)
    served = await _asked(starts, is_new=False)

    came = []
    for _ in range(3):
        turn.end()
        done, _ = await asyncio.wait({new, newer, served} - set(came), timeout=5, return_when=asyncio.FIRST_COMPLETED)
        (task,) = done
        came.append(task)
        turn = task.result()
    assert came == [served, new, newer]


async def test_a_turn_ends_once() -> None:
    starts = Starts(1)
    turn = await starts.turn(is_new=True)
    turn.end()
    turn.end()
    await _asked(starts)
    assert not (await _asked(starts)).done()


async def test_a_start_that_takes_long_keeps_nobody_waiting() -> None:
    starts = Starts(1, most_s=0.01)
    await starts.turn(is_new=True)
    await asyncio.wait_for(starts.turn(is_new=True), 5)


@pytest.mark.parametrize("called", [False, True], ids=["while it waits", "just after it was called"])
async def test_who_leaves_the_queue_loses_no_turn(called: bool) -> None:
    starts = Starts(1)
    turn = await starts.turn(is_new=True)
    leaving = await _asked(starts)
    if called:
        turn.end()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    turn.end()
    await asyncio.wait_for(starts.turn(is_new=True), 5)


def test_this_machine_starts_some_at_once() -> None:
    assert most_at_once() >= 2
