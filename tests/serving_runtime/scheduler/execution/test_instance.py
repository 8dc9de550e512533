"""Threads of instances wake the event loop, and leave no descriptor behind."""

import asyncio
import threading
from pathlib import Path

import pytest
import uvloop

from serving_runtime.scheduler.execution.execution import Execution
from serving_runtime.scheduler.execution.instance import Instance, LoopWakeup
from serving_runtime.scheduler.job import Job

LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])


def eventfds() -> int:
    return sum("eventfd" in _target(link) for link in Path("/proc/self/fd").iterdir())


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:  # the descriptor by which the folder is listed
        return ""


@LOOPS
def test_what_a_thread_rings_is_heard_on_the_loop(new_loop: object) -> None:
    async def play() -> None:
        heard: list[int] = []
        both = asyncio.Event()

        def on_wake() -> None:
            heard.append(threading.get_ident())
            both.set()

        wakeup = LoopWakeup(asyncio.get_running_loop(), on_wake)
        for _ in range(3):
            both.clear()
            thread = threading.Thread(target=wakeup.wake)
            thread.start()
            await asyncio.wait_for(both.wait(), 60)
            thread.join()
        assert set(heard) == {threading.get_ident()}
        wakeup.close()
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=new_loop) as runner:  # type: ignore[arg-type]
        runner.run(play())


@LOOPS
def test_every_batch_of_an_instance_is_told_and_its_end_leaves_no_descriptor(new_loop: object) -> None:
    async def play() -> None:
        before = eventfds()
        done: list[Execution] = []
        told = asyncio.Event()

        def on_done(_instance: Instance, executions: list[Execution]) -> None:
            done.extend(executions)
            told.set()

        instance = Instance(list, asyncio.get_running_loop(), on_done, "test")
        for _ in range(20):
            instance.start([Job([], 1, None, lambda _result: None, 0)])
        instance.close()
        while len(done) < 20:
            told.clear()
            await asyncio.wait_for(told.wait(), 60)
        async with asyncio.timeout(60):
            while eventfds() > before:  # noqa: ASYNC110 - the thread's last word
                await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=new_loop) as runner:  # type: ignore[arg-type]
        runner.run(play())


def test_a_bell_that_is_silenced_after_its_loop_has_ended_leaves_no_descriptor() -> None:
    before = eventfds()
    loop = asyncio.new_event_loop()
    within = eventfds()
    wakeup = LoopWakeup(loop, lambda: None)
    assert eventfds() == within + 1
    loop.close()
    wakeup.close()
    assert eventfds() == before
