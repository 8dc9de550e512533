"""The scheduler on a real event loop: gathering, limits, deadlines, cancellation, threads."""

import asyncio
import collections
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import FailureReason, Overloaded, ServingError, Unavailable
from serving_runtime.config.batching import BatchPolicy, QueuePolicy, TimeoutAction
from serving_runtime.scheduler.execution import run_timing
from serving_runtime.scheduler.job import Job, Result
from serving_runtime.scheduler.scheduler import Scheduler
from serving_runtime.telemetry.statistics import ModelStatistics


class GatedModel:
    """Doubles its input; a run in a thread waits until the gate is open. Remembers the batches it saw."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.entered = threading.Semaphore(0)
        self.batches: list[list[float]] = []
        self.threads: set[str] = set()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        self.batches.append(inputs[0].ravel().tolist())
        self.threads.add(threading.current_thread().name)
        self.entered.release()
        assert self.gate.wait(10)
        return [inputs[0] * 2]


class Client:
    """Submits jobs and keeps their results."""

    def __init__(self, model: GatedModel, policy: BatchPolicy | None, *, instances: int = 1, inline: bool = False):
        self.model = model
        self.statistics = ModelStatistics()
        self.scheduler = Scheduler(
            model.run,
            name="m",
            policy=policy,
            instances=instances,
            inline=inline,
            statistics=self.statistics,
            loop=asyncio.get_running_loop(),
        )
        self.answers: list[asyncio.Future[Result]] = []

    def submit(
        self,
        value: float,
        *,
        rows: int = 1,
        shape_key: object = None,
        priority: int = 0,
        timeout_us: int = 0,
        caller: bytes = b"",
    ):
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        arrived_ns = int(asyncio.get_running_loop().time() * 1e9)
        job = Job([np.full((rows, 1), value, "f4")], rows, shape_key, answer.set_result, arrived_ns)
        job.priority, job.timeout_us, job.caller = priority, timeout_us, caller
        self.statistics.accepted += 1
        self.scheduler.submit(job)
        self.answers.append(answer)
        return job

    async def running(self) -> None:
        """Wait until the model was entered once more."""
        assert await asyncio.to_thread(self.model.entered.acquire, timeout=10)

    async def result(self, index: int) -> Result:
        return await asyncio.wait_for(asyncio.shield(self.answers[index]), 10)

    async def results(self) -> list[object]:
        found = await asyncio.wait_for(asyncio.gather(*self.answers), 10)
        return [result if isinstance(result, ServingError) else result[0].ravel().tolist() for result in found]


class RacingModel(GatedModel):
    """Every run waits for a gate of its own, named by the first value of its batch."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[float, threading.Event] = collections.defaultdict(threading.Event)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        first = float(inputs[0].ravel()[0])
        self.batches.append(inputs[0].ravel().tolist())
        self.entered.release()
        assert self.gates[first].wait(10)
        if first < 0:
            raise ValueError("negative")
        return [inputs[0] * 2]


def batching(limit: int = 4, **queue: object) -> BatchPolicy:
    return BatchPolicy(limit, frozenset(), 0, 0, 0, {0: QueuePolicy(**queue)})  # type: ignore[arg-type]


@pytest.mark.feature("C7")
async def test_while_an_instance_is_busy_requests_gather() -> None:
    client = Client(GatedModel(), batching(4))
    client.submit(0)
    await client.running()
    for value in range(1, 8):
        client.submit(value)
    assert client.scheduler.pending == 7
    client.model.gate.set()
    assert await client.results() == [[value * 2] for value in range(8)]
    assert client.model.batches == [[0], [1, 2, 3, 4], [5, 6, 7]]
    assert client.model.threads == {"m-0"}
    assert (client.statistics.executions, client.statistics.successes, client.statistics.inflight) == (3, 8, 0)


async def test_inline_requests_of_one_pass_over_the_sockets_run_together_in_the_loop() -> None:
    client = Client(GatedModel(), batching(4), inline=True)
    client.model.gate.set()
    for value in range(6):
        client.submit(value)
    assert await client.results() == [[value * 2] for value in range(6)]
    assert client.model.batches == [[0, 1, 2, 3], [4, 5]]
    assert client.model.threads == {threading.current_thread().name}


async def test_without_batching_each_request_runs_alone() -> None:
    client = Client(GatedModel(), None, inline=True)
    client.model.gate.set()
    for value in range(3):
        client.submit(value)
    assert await client.results() == [[0], [2], [4]]
    assert client.model.batches == [[0], [1], [2]]


async def test_different_shapes_are_not_joined() -> None:
    client = Client(GatedModel(), batching(8), inline=True)
    client.model.gate.set()
    for value, key in ((1, "a"), (2, "a"), (3, "b"), (4, "a")):
        client.submit(value, shape_key=key)
    await client.results()
    assert client.model.batches == [[1, 2], [3], [4]]


@pytest.mark.feature("C5")
async def test_two_instances_run_at_the_same_time() -> None:
    client = Client(GatedModel(), None, instances=2)
    client.submit(1)
    client.submit(2)
    await client.running()
    await client.running()
    client.model.gate.set()
    assert await client.results() == [[2], [4]]
    assert client.model.threads == {"m-0", "m-1"}


@pytest.mark.feature("C7")
async def test_a_delay_waits_for_company_but_not_for_longer() -> None:
    policy = BatchPolicy(4, frozenset(), 20_000, 0, 0, {0: QueuePolicy()})
    client = Client(GatedModel(), policy, inline=True)
    client.model.gate.set()
    client.submit(1)
    await asyncio.sleep(0)
    client.submit(2)
    assert await client.results() == [[2], [4]]
    assert client.model.batches == [[1, 2]]
    assert client.statistics.queue_latency.sum_ns >= 20_000_000


@pytest.mark.feature("C8")
async def test_a_full_queue_refuses() -> None:
    client = Client(GatedModel(), batching(max_queue_size=1))
    client.submit(1)
    await client.running()
    client.submit(2)
    with pytest.raises(Unavailable, match="Exceeds maximum queue size"):
        client.submit(3)
    client.model.gate.set()
    assert await client.results() == [[2], [4]]


@pytest.mark.feature("C8", "E14")
async def test_batches_are_filled_in_turns_between_callers() -> None:
    model = GatedModel()
    client = Client(model, BatchPolicy(3, frozenset(), 0, 0, 0, {0: QueuePolicy()}))
    client.submit(0, caller=b"greedy")
    await client.running()
    for value in range(1, 7):
        client.submit(value, caller=b"greedy")
    client.submit(10, caller=b"polite")
    client.submit(20, rows=2, caller=b"other")
    model.gate.set()
    await client.results()
    assert model.batches == [[0], [1, 10], [20, 20, 2], [3, 4, 5], [6]]
    client.scheduler.close()


async def test_a_greedy_caller_makes_room_in_a_full_queue_and_gets_the_refusal() -> None:
    model = GatedModel()
    client = Client(model, BatchPolicy(1, frozenset(), 0, 0, 0, {0: QueuePolicy(max_queue_size=3)}))
    client.submit(0, caller=b"greedy")
    await client.running()
    for value in range(1, 4):
        client.submit(value, caller=b"greedy")
    client.submit(10, caller=b"polite")
    with pytest.raises(Overloaded) as refused:
        client.submit(4, caller=b"greedy")
    assert refused.value.retry_after_s == 1
    assert not client.answers[3].done(), "not from within another request's submit"
    displaced = await client.result(3)
    assert isinstance(displaced, Overloaded)
    assert displaced.message == "Exceeds maximum queue size of 3 waiting requests, of which this caller has the most"
    model.gate.set()
    assert [type(each) for each in await client.results()].count(Overloaded) == 1
    assert model.batches == [[0], [1], [10], [2]]
    assert client.statistics.displaced == 1
    assert client.statistics.failures[FailureReason.REJECTED] == 1
    client.scheduler.close()


async def test_a_displaced_request_whose_client_leaves_gets_no_answer() -> None:
    model = GatedModel()
    client = Client(model, BatchPolicy(1, frozenset(), 0, 0, 0, {0: QueuePolicy(max_queue_size=2)}))
    client.submit(0, caller=b"greedy")
    await client.running()
    client.submit(1, caller=b"greedy")
    last = client.submit(2, caller=b"greedy")
    client.submit(10, caller=b"polite")
    last.cancel()
    model.gate.set()
    for index in (0, 1, 3):
        assert not isinstance(await client.result(index), ServingError)
    assert not client.answers[2].done()
    assert client.statistics.finished == client.statistics.accepted == 4
    client.scheduler.close()


async def test_with_preserve_ordering_callers_share_one_queue() -> None:
    model = GatedModel()
    client = Client(model, BatchPolicy(1, frozenset(), 0, 0, 0, {0: QueuePolicy()}, preserve_ordering=True))
    client.submit(0, caller=b"greedy")
    await client.running()
    for value in (1, 2):
        client.submit(value, caller=b"greedy")
    client.submit(3, caller=b"polite")
    model.gate.set()
    await client.results()
    assert model.batches == [[0], [1], [2], [3]]
    client.scheduler.close()


async def test_a_request_whose_time_is_over_is_answered_while_the_model_still_runs() -> None:
    client = Client(GatedModel(), batching(default_timeout_us=1000))
    client.submit(1)
    await client.running()
    client.submit(2)
    expired = await client.result(1)
    assert isinstance(expired, Unavailable)
    assert "Request timeout expired" in str(expired)
    assert client.statistics.failures[FailureReason.REJECTED] == 1
    assert client.scheduler.pending == 0
    client.model.gate.set()
    assert (await client.results())[0] == [2]


@pytest.mark.feature("C8")
async def test_a_delayed_request_runs_after_the_punctual_ones() -> None:
    queues = {0: QueuePolicy(TimeoutAction.DELAY, allow_timeout_override=True)}
    client = Client(GatedModel(), BatchPolicy(1, frozenset(), 0, 0, 0, queues))
    client.submit(0)
    await client.running()
    late = client.submit(1, timeout_us=1000)
    client.submit(2)
    async with asyncio.timeout(10):
        while late.timer is not None:  # noqa: ASYNC110 - nobody tells when a job is delayed
            await asyncio.sleep(0)
    client.model.gate.set()
    assert await client.results() == [[0], [2], [4]]
    assert client.model.batches == [[0], [2], [1]]


@pytest.mark.feature("C7", "E14")
async def test_priorities_overtake() -> None:
    queues = {1: QueuePolicy(), 2: QueuePolicy()}
    client = Client(GatedModel(), BatchPolicy(1, frozenset(), 0, 2, 2, queues))
    client.submit(0, priority=2)
    await client.running()
    client.submit(1, priority=2)
    client.submit(2, priority=1)
    client.model.gate.set()
    await client.results()
    assert client.model.batches == [[0], [2], [1]]


@pytest.mark.feature("E20")
async def test_a_cancelled_request_leaves_the_queue_and_is_counted() -> None:
    client = Client(GatedModel(), batching(1))
    client.submit(1)
    await client.running()
    client.submit(2).cancel()
    client.answers.pop()
    client.submit(3)
    assert client.scheduler.pending == 1
    client.model.gate.set()
    assert await client.results() == [[2], [6]]
    assert client.model.batches == [[1], [3]]
    assert client.statistics.failures[FailureReason.CANCELED] == 1


async def test_the_result_of_a_request_cancelled_while_it_runs_is_dropped() -> None:
    client = Client(GatedModel(), batching(4))
    job = client.submit(1)
    await client.running()
    job.cancel()
    dropped = client.answers.pop()
    client.submit(2)
    client.model.gate.set()
    assert await client.results() == [[4]]
    assert not dropped.done()
    assert client.statistics.inflight == 0


async def test_a_callback_that_raises_does_not_take_its_neighbours_along() -> None:
    client = Client(GatedModel(), batching(4), inline=True)
    client.model.gate.set()
    told: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))

    def broken(_result: Result) -> None:
        raise RuntimeError("socket gone")

    client.scheduler.submit(Job([np.zeros((1, 1), "f4")], 1, None, broken, 0))
    client.submit(2)
    assert await client.results() == [[4]]
    assert [str(context["exception"]) for context in told] == ["socket gone"]


async def test_a_model_that_turns_out_heavy_leaves_the_loop() -> None:
    client = Client(GatedModel(), batching(1), inline=True)

    def heavy(inputs: Sequence[Array]) -> list[Array]:
        client.model.threads.add(threading.current_thread().name)
        threading.Event().wait(0.003)  # stands for computing
        return [inputs[0]]

    client.scheduler._run = heavy
    for instance in client.scheduler._instances:
        instance._run = heavy
    for value in range(run_timing.RUNS):
        client.submit(value)
    await client.results()
    assert not client.scheduler.inline
    client.submit(2)
    await client.results()
    assert client.model.threads == {threading.current_thread().name, "m-0"}


@pytest.mark.feature("C7")
@pytest.mark.parametrize("second", [pytest.param(2.0, id="answers"), pytest.param(-2.0, id="errors too")])
async def test_with_preserve_ordering_a_fast_instance_waits_for_a_slow_one_that_began_before(second: float) -> None:
    policy = BatchPolicy(1, frozenset(), 0, 0, 0, {0: QueuePolicy()}, preserve_ordering=True)
    model = RacingModel()
    client = Client(model, policy, instances=2)
    order: list[int] = []
    for value in (1.0, second):
        client.submit(value)
        await client.running()
    for number, answer in enumerate(client.answers):
        answer.add_done_callback(lambda _answer, number=number: order.append(number))
    model.gates[second].set()
    async with asyncio.timeout(10):
        while client.statistics.finished < 1:  # noqa: ASYNC110 - it is counted when it is done, and answered later
            await asyncio.sleep(0)
    assert not client.answers[1].done()
    model.gates[1.0].set()
    first, last = await client.results()
    assert first == [2]
    assert last == [4] or "negative" in str(last)
    assert order == [0, 1]


@pytest.mark.feature("C7")
async def test_without_preserve_ordering_the_fast_instance_answers_first() -> None:
    model = RacingModel()
    client = Client(model, batching(1), instances=2)
    for value in (1.0, 2.0):
        client.submit(value)
        await client.running()
    model.gates[2.0].set()
    assert (await client.result(1)) == [np.array([[4]], "f4")]
    assert not client.answers[0].done()
    model.gates[1.0].set()
    await client.results()
