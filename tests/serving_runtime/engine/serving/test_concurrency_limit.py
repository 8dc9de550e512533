"""At most so many requests with the models at once; the others wait, leave, or are refused."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import FailureReason, InvalidArgument, Overloaded, ServingError
from serving_runtime.common.request import InferRequest, InferResponse, OnDone, Outcome, Tensor
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.concurrency_limit import WAITING_PER_PLACE, ConcurrencyLimit
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.telemetry.statistics import ModelStatistics
from tests.serving_runtime import onnx_models


class Work:
    """A request that a model has begun."""

    decoupled = False

    def __init__(self, model: "Model", request: InferRequest, on_done: OnDone) -> None:
        self.model, self.request, self.on_done, self.cancelled = model, request, on_done, False

    def cancel(self) -> None:
        self.cancelled = True
        self.model.statistics.record_failure(FailureReason.CANCELED, 0)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def end(self) -> None:
        self.model.statistics.record_failure(FailureReason.OTHER, 0)
        self.on_done(InferResponse("m", "1", (), self.request.id))


class Model:
    """Begins every request at once and ends it when it is told to."""

    def __init__(self) -> None:
        self.statistics, self.begun = ModelStatistics(), list[Work]()

    def start(self, request: InferRequest, on_done: OnDone) -> Work:
        if request.id == "bad":
            raise InvalidArgument("a wrong request")
        self.statistics.accepted += 1
        self.begun.append(Work(self, request, on_done))
        return self.begun[-1]

    @property
    def names(self) -> list[str]:
        return [work.request.id for work in self.begun]


def _request(name: str, caller: bytes = b"") -> InferRequest:
    return InferRequest("m", "1", (), id=name, caller=caller)


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def ask(model: Model) -> Callable[..., object]:
    limit = ConcurrencyLimit(2, lambda: model.statistics.inflight)

    def infer(name: str, on_done: OnDone = lambda _: None, caller: bytes = b"") -> object:
        return limit.infer(model.start, model.statistics, _request(name, caller), on_done)

    return infer


async def test_further_requests_wait_in_the_order_they_came(model: Model, ask: Callable[..., object]) -> None:
    for name in "abcde":
        ask(name)
    assert (model.names, model.statistics.inflight) == (["a", "b"], 5)
    model.begun[1].end()
    assert model.names == ["a", "b"], "not while the model is answering"
    await asyncio.sleep(0)
    assert (model.names, model.statistics.inflight) == (["a", "b", "c"], 4)
    model.begun[0].end()
    model.begun[2].end()
    await asyncio.sleep(0)
    assert (model.names, model.statistics.inflight) == (["a", "b", "c", "d", "e"], 2)


async def test_nobody_overtakes_who_waits(model: Model, ask: Callable[..., object]) -> None:
    for name in "abc":
        ask(name)
    model.begun[0].end()
    ask("late")
    await asyncio.sleep(0)
    assert model.names == ["a", "b", "c"]


async def test_too_many_waiting_are_refused(model: Model, ask: Callable[..., object]) -> None:
    for number in range(2 + 2 * WAITING_PER_PLACE):
        ask(str(number))
    with pytest.raises(Overloaded, match=r"2 requests are being answered, .* and 20 wait for them; try again soon"):
        ask("one more")
    assert model.statistics.failures[FailureReason.REJECTED] == 1
    assert model.statistics.inflight == 22


async def test_callers_take_turns(model: Model, ask: Callable[..., object]) -> None:
    for name in "abcdef":
        ask(name, caller=b"greedy")
    ask("polite", caller=b"polite")
    for work in range(5):
        model.begun[work].end()
        await asyncio.sleep(0)
    assert model.names == ["a", "b", "c", "polite", "d", "e", "f"]


async def test_a_greedy_caller_makes_room_and_gets_the_refusal(model: Model, ask: Callable[..., object]) -> None:
    refused: list[Outcome] = []
    for number in range(2 + 2 * WAITING_PER_PLACE):
        ask(str(number), refused.append, caller=b"greedy")
    ask("polite", caller=b"polite")
    assert refused == [], "not from within another request"
    await asyncio.sleep(0)
    (error,) = refused
    assert isinstance(error, Overloaded)
    assert "20 wait for them, of which this caller has the most; try again soon" in error.message
    with pytest.raises(Overloaded):
        ask("one more", caller=b"greedy")
    assert (model.statistics.displaced, model.statistics.inflight) == (1, 22)


async def test_a_displaced_request_whose_client_leaves_gets_no_answer(model: Model, ask: Callable[..., object]) -> None:
    answered: list[Outcome] = []
    *_, last = [ask(str(n), answered.append, caller=b"greedy") for n in range(2 + 2 * WAITING_PER_PLACE)]
    ask("polite", caller=b"polite")
    last.cancel()  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    assert answered == []
    assert model.statistics.inflight == 22


async def test_a_stream_waits_too_and_its_client_may_be_slow_once_it_has_begun(model: Model) -> None:
    limit = ConcurrencyLimit(1, lambda: model.statistics.inflight)
    for name in ("a", "b"):
        stream = limit.infer(model.start, model.statistics, _request(name), lambda _: None, decoupled=True)
    assert stream.decoupled
    stream.pause()
    model.begun[0].end()
    await asyncio.sleep(0)
    stream.pause()
    assert model.begun[1].paused
    stream.resume()
    assert not model.begun[1].paused


async def test_who_leaves_frees_a_place_wherever_he_is(model: Model, ask: Callable[..., object]) -> None:
    a, _, c, _ = [ask(name) for name in "abcd"]
    c.cancel()  # type: ignore[attr-defined]
    c.cancel()  # type: ignore[attr-defined]
    a.cancel()  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    assert (model.names, model.statistics.inflight) == (["a", "b", "d"], 2)
    assert model.statistics.failures[FailureReason.CANCELED] == 2


async def test_who_waited_can_be_cancelled_after_it_began(model: Model, ask: Callable[..., object]) -> None:
    *_, c = [ask(name) for name in "abc"]
    model.begun[0].end()
    await asyncio.sleep(0)
    c.cancel()  # type: ignore[attr-defined]
    assert model.begun[2].cancelled
    assert model.statistics.inflight == 1


async def test_a_wrong_request_is_told_after_it_waited(model: Model, ask: Callable[..., object]) -> None:
    told: list[Outcome] = []
    for name in ("a", "b", "bad", "c"):
        ask(name, told.append)
    model.begun[0].end()
    await asyncio.sleep(0)
    assert [type(each) for each in told] == [InferResponse, InvalidArgument]
    assert model.names == ["a", "b", "c"], "its place went to the next"


@pytest.mark.parametrize("start", [Engine.infer, Engine.stream])
async def test_every_request_of_an_engine_is_answered_once(tmp_path: Path, start: Callable[..., object]) -> None:
    onnx_models.identity(
        onnx_models.configure(tmp_path / "same", "max_batch_size: 8 dynamic_batching { }") / "1" / "model.onnx"
    )
    engine = Engine([tmp_path], LoadSettings(), max_concurrent_requests=3)
    assert await engine.load_all() == []
    loop = asyncio.get_running_loop()
    answers: list[asyncio.Future[Outcome]] = []
    for number in range(60):
        answer: asyncio.Future[Outcome] = loop.create_future()
        answers.append(answer)
        x = Tensor("x", DATATYPES["FP32"], np.full((1, 4), number, "f4"))
        try:
            start(engine, InferRequest("same", "", (x,)), answer.set_result)
        except ServingError as error:
            answer.set_result(error)
    outcomes = await asyncio.wait_for(asyncio.gather(*answers), 10)
    answered = [outcome for outcome in outcomes if isinstance(outcome, InferResponse)]
    assert [int(outcome.outputs[0].array[0, 0]) for outcome in answered] == list(range(33))
    assert {type(outcome) for outcome in outcomes[33:]} == {Overloaded}
    assert engine.inflight == 0
    engine.close()
