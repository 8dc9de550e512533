"""Runs wait for resources; who goes first is a pure function, waiting happens in threads."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ModelError
from serving_runtime.config.instances import InstanceGroup
from serving_runtime.scheduler.job import Job, Result
from serving_runtime.scheduler.rate_limiter import Claim, RateLimiter, granted
from serving_runtime.scheduler.scheduler import Scheduler
from serving_runtime.telemetry.statistics import ModelStatistics

pytestmark = pytest.mark.feature("C6")


def claim(name: str, *, executions: int = 0, priority: int = 1, **resources: int) -> Claim:
    made = Claim(resources, priority)
    made.executions = executions
    made.name = name  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize(
    ("waiting", "free", "names"),
    [
        pytest.param([], {"r": 1}, "", id="nobody waits"),
        pytest.param([claim("a", r=1), claim("b", r=1)], {"r": 2}, "ab", id="enough for all"),
        pytest.param([claim("a", r=1), claim("b", r=1)], {"r": 1}, "a", id="first come, first served"),
        pytest.param([claim("a", r=1, executions=3), claim("b", r=1)], {"r": 1}, "b", id="fewer executions first"),
        pytest.param(
            [claim("a", r=1, executions=3, priority=2), claim("b", r=1, executions=5)],
            {"r": 1},
            "b",
            id="priority 2 gets half the chances: 3 count as 6",
        ),
        pytest.param(
            [claim("a", r=1, executions=2, priority=2), claim("b", r=1, executions=5)],
            {"r": 1},
            "a",
            id="and has its turn",
        ),
        pytest.param([claim("a", r=3), claim("b", r=1)], {"r": 2}, "", id="nobody overtakes a large claim"),
        pytest.param([claim("a", r=1, s=1), claim("b", s=1)], {"r": 1, "s": 1}, "a", id="several resources"),
        pytest.param([claim("a"), claim("b", r=1)], {"r": 0}, "a", id="no resource, no waiting"),
    ],
)
def test_who_may_run(waiting: list[Claim], free: dict[str, int], names: str) -> None:
    assert "".join(found.name for found in granted(waiting, free)) == names  # type: ignore[attr-defined]


def test_an_instance_that_would_wait_for_ever_is_refused() -> None:
    limiter = RateLimiter({"r": 2})
    limiter.limit([InstanceGroup(1, {"r": 2})], "m")
    with pytest.raises(ModelError) as caught:
        limiter.limit([InstanceGroup(1, {"r": 3})], "m")
    assert str(caught.value) == ("model 'm': an instance needs 3 of resource 'r', but --rate-limit-resource gives 2")


class Watched:
    """Counts how many of its runs, and of others that share the counter, go on at the same time."""

    running = 0
    lock = threading.Lock()

    def __init__(self) -> None:
        self.most: list[int] = []
        self.gate = threading.Event()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        with Watched.lock:
            Watched.running += 1
            self.most.append(Watched.running)
        assert self.gate.wait(10)
        with Watched.lock:
            Watched.running -= 1
        return [inputs[0]]


def submit(scheduler: Scheduler, times: int) -> list[asyncio.Future[Result]]:
    answers: list[asyncio.Future[Result]] = []
    for _ in range(times):
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        answers.append(answer)
        scheduler.submit(Job([np.zeros((1, 1), "f4")], 1, None, answer.set_result, time.monotonic_ns()))
    return answers


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - threads tell nobody
            await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    ("sizes", "together"),
    [
        pytest.param({}, 1, id="as large as the largest claim: one after the other"),
        pytest.param({"r": 3}, 3, id="as large as the server says: three at a time"),
    ],
)
async def test_models_share_what_there_is(sizes: dict[str, int], together: int) -> None:
    limiter = RateLimiter(sizes)
    model = Watched()
    schedulers = [
        Scheduler(
            model.run,
            name=name,
            policy=None,
            instances=2,
            inline=True,
            statistics=ModelStatistics(),
            loop=asyncio.get_running_loop(),
            limit=limiter.limit([InstanceGroup(2, {"r": 1})], name),
        )
        for name in ("a", "b")
    ]
    answers = [answer for scheduler in schedulers for answer in submit(scheduler, 4)]
    await until(lambda: len(limiter._waiting) == 4 - together and len(model.most) == together)
    model.gate.set()
    await asyncio.wait_for(asyncio.gather(*answers), 10)
    assert len(model.most) == 8
    assert max(model.most) <= together
    assert not any(scheduler.inline for scheduler in schedulers)
    for scheduler in schedulers:
        scheduler.close()


async def test_what_a_model_needed_is_forgotten_with_it() -> None:
    limiter = RateLimiter({})
    small, large = (limiter.limit([InstanceGroup(1, {"r": count})], "m") for count in (1, 5))
    assert limiter._free() == {"r": 5}
    del large
    assert limiter._free() == {"r": 1}
    del small
