"""Decoupled models: any number of answers per request, a slow client, a client that goes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import (
    BackendError,
    FailureReason,
    ModelError,
    ServingError,
    Unavailable,
    Unsupported,
)
from serving_runtime.common.request import InferRequest, Outcome, Tensor
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.engine.serving.statistics import statistics_message
from serving_runtime.scheduler.decoupled.job import WINDOW
from tests.serving_runtime import onnx_models

OWN = Path(__file__).parents[2] / "own_backends"
DECOUPLED = 'backend: "repeat" model_transaction_policy { decoupled: true } '


def parameter(key: str, value: object) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }} '


def request(count: int, model: str = "repeat", **parameters: int) -> InferRequest:
    x = np.array([count], np.int32)
    return InferRequest(model, "", (Tensor("x", DATATYPES["INT32"], x),), id="r", parameters=parameters)


class Answers:
    """What one request was answered, in order."""

    def __init__(self, engine: Engine, asked: InferRequest) -> None:
        self.outcomes: list[Outcome] = []
        self._news = asyncio.Event()
        self.job = engine.stream(asked, self._take)

    def _take(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._news.set()

    async def until(self, condition: Callable[[list[Outcome]], bool]) -> list[Outcome]:
        async with asyncio.timeout(10):
            while not condition(self.outcomes):
                self._news.clear()
                await self._news.wait()
        return self.outcomes

    async def all(self) -> list[Outcome]:
        return await self.until(lambda found: bool(found) and (isinstance(found[-1], ServingError) or found[-1].final))

    @property
    def numbers(self) -> list[int]:
        answers = [outcome for outcome in self.outcomes if not isinstance(outcome, ServingError) and outcome.outputs]
        return [int(answer.outputs[0].array[0]) for answer in answers]


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """The file to which the model writes when it is told to stop."""
    return tmp_path / "told"


def stops(told: Path) -> int:
    return len(told.read_text().splitlines())


@pytest.fixture
async def engine(tmp_path: Path, told: Path) -> AsyncIterator[Engine]:
    """repeat, failing (at response 2), crooked, and limited: a queue of one, with priorities."""
    root = tmp_path / "repository"
    queue = "default_queue_policy { max_queue_size: 1 allow_timeout_override: true }"
    batcher = f"max_batch_size: 2 dynamic_batching {{ {queue} }} "
    for name, config in (
        ("repeat", parameter("told", told)),
        ("failing", parameter("fail_at", 2)),
        ("crooked", parameter("crooked", 1)),
        ("limited", parameter("batched", 1) + batcher),
    ):
        (onnx_models.configure(root / name, DECOUPLED + config) / "1").mkdir()
    found = Engine([root], LoadSettings(backend_directory=OWN))
    assert await found.load_all() == []
    yield found
    found.close()


@pytest.mark.feature("C20", "E18")
async def test_a_request_is_answered_once_per_response_and_then_ends_with_an_empty_one(engine: Engine) -> None:
    answers = Answers(engine, request(5))
    outcomes = await answers.all()
    assert answers.numbers == [0, 1, 2, 3, 4]
    assert [outcome.final for outcome in outcomes] == [False] * 5 + [True]
    assert outcomes[-1].outputs == ()
    assert {outcome.id for outcome in outcomes} == {"r"}


async def test_a_request_may_have_no_response_but_the_last(engine: Engine) -> None:
    assert [(outcome.outputs, outcome.final) for outcome in await Answers(engine, request(0)).all()] == [((), True)]


async def test_a_model_that_fails_half_way_ends_with_its_error(engine: Engine) -> None:
    answers = Answers(engine, request(5, "failing"))
    outcomes = await answers.all()
    assert answers.numbers == [0, 1]
    assert isinstance(outcomes[-1], BackendError)
    assert str(outcomes[-1]) == "the model failed at 2"


async def test_responses_that_are_not_those_of_the_signature_fail_the_request(engine: Engine) -> None:
    (outcome,) = await Answers(engine, request(1, "crooked")).all()
    assert str(outcome) == "the model sent output 'y' as float64, not INT32"


@pytest.mark.feature("C20")
async def test_a_caller_that_takes_one_answer_is_refused(engine: Engine) -> None:
    with pytest.raises(Unsupported, match="'repeat' has a decoupled transaction policy"):
        engine.infer(request(1), lambda _outcome: None)


@pytest.mark.feature("E20")
async def test_a_cancelled_run_is_told_to_stop(engine: Engine, told: Path) -> None:
    answers = Answers(engine, request(-1))
    await answers.until(lambda found: len(found) >= 10)
    answers.job.cancel()
    seen = len(answers.outcomes)
    following = Answers(engine, request(3))  # the instance is free again
    await following.all()
    assert following.numbers == [0, 1, 2]
    assert len(answers.outcomes) == seen
    assert stops(told) == 1
    statistics = engine.servable("repeat").statistics
    assert statistics.failures[FailureReason.CANCELED] == 1
    assert statistics.inflight == 0


@pytest.mark.feature("E20")
async def test_a_cancelled_request_leaves_the_queue(engine: Engine) -> None:
    running = Answers(engine, request(-1))
    await running.until(bool)
    waiting = Answers(engine, request(1))
    assert engine.servable("repeat").scheduler.pending == 1
    waiting.job.cancel()
    assert engine.servable("repeat").scheduler.pending == 0
    running.job.cancel()


async def test_a_model_waits_for_a_client_that_reads_slowly(engine: Engine) -> None:
    answers = Answers(engine, request(100))
    answers.job.pause()
    await answers.until(lambda found: len(found) == WINDOW)
    other = Answers(engine, request(2, "failing"))  # time for more responses, were the model not waiting
    await other.all()
    assert len(answers.outcomes) == WINDOW
    answers.job.resume()
    await answers.all()
    assert answers.numbers == list(range(100))


async def test_a_paused_request_can_be_cancelled(engine: Engine, told: Path) -> None:
    answers = Answers(engine, request(-1))
    answers.job.pause()
    await answers.until(lambda found: len(found) == WINDOW)
    answers.job.cancel()
    await Answers(engine, request(1)).all()
    assert stops(told) == 1


@pytest.mark.feature("E9")
async def test_statistics_count_each_place_of_the_streams(engine: Engine) -> None:
    for count in (2, 1):
        await Answers(engine, request(count)).all()
    await Answers(engine, request(5, "failing")).all()
    (message,) = statistics_message([engine.servable("repeat")]).model_stats
    assert (message.inference_count, message.inference_stats.success.count) == (2, 2)
    shown = message.response_stats
    assert {place: (shown[place].success.count, shown[place].empty_response.count) for place in shown} == {
        "0": (2, 0), "1": (1, 1), "2": (0, 1),
    }  # fmt: skip
    assert shown["0"].compute_infer.ns > 0
    (message,) = statistics_message([engine.servable("failing")]).model_stats
    assert (message.response_stats["2"].fail.count, message.response_stats["1"].success.count) == (1, 1)


def configured(root: Path, config: str) -> Engine:
    (onnx_models.configure(root / "repeat", config) / "1").mkdir()
    return Engine([root], LoadSettings(backend_directory=OWN))


@pytest.mark.feature("C8")
async def test_the_queue_of_a_decoupled_model_has_its_limits(engine: Engine) -> None:
    def asked(count: int, **parameters: int) -> InferRequest:
        x = np.array([[count]], np.int32)
        return request(count, "limited", **parameters)._replace(inputs=(Tensor("x", DATATYPES["INT32"], x),))

    running = Answers(engine, asked(-1))
    await running.until(bool)
    waiting = Answers(engine, asked(1, timeout=1000))
    with pytest.raises(Unavailable, match="Exceeds maximum queue size"):
        engine.stream(asked(1), lambda _outcome: None)
    (expired,) = await waiting.all()
    assert "Request timeout expired" in str(expired)
    running.job.cancel()
    assert engine.servable("limited").statistics.failures[FailureReason.REJECTED] == 2


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        pytest.param('backend: "repeat"', "needs model_transaction_policy { decoupled: true }", id="not decoupled"),
        pytest.param(
            'backend: "scale" model_transaction_policy { decoupled: true }',
            "backend 'scale' answers a request once only",
            id="a backend that does not stream",
        ),
    ],
)
async def test_policy_and_backend_must_agree(tmp_path: Path, config: str, sentence: str) -> None:
    (error,) = await configured(tmp_path, config).load_all()
    assert isinstance(error, ModelError)
    assert sentence in str(error)
