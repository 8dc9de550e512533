"""Models that know the parameters of their requests, batched and alone."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import BackendError
from serving_runtime.common.request import InferRequest, InferResponse, Outcome, Tensor
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.scheduler.cache.response_cache import ResponseCache
from tests.serving_runtime import onnx_models

OWN = Path(__file__).parents[2] / "own_backends"

CONFIG = """
backend: "scale" max_batch_size: 8 {batching}
parameters {{ key: "asks" value {{ string_value: "yes" }} }}
parameters {{ key: "log" value {{ string_value: "{log}" }} }}
"""


def request(times: object, rows: int) -> InferRequest:
    x = Tensor("x", DATATYPES["FP32"], np.ones((rows, 2), "f4"))
    return InferRequest("m", "", (x,), parameters={} if times is None else {"times": times})


async def infer(engine: Engine, *requests: InferRequest) -> list[Outcome]:
    loop = asyncio.get_running_loop()
    answers: list[asyncio.Future[Outcome]] = [loop.create_future() for _ in requests]
    for asked, answer in zip(requests, answers, strict=True):
        engine.infer(asked, answer.set_result)
    return await asyncio.wait_for(asyncio.gather(*answers), 10)


def rows_of(outcome: Outcome) -> list[float]:
    assert isinstance(outcome, InferResponse), outcome
    return outcome.outputs[0].array[:, 0].tolist()


@pytest.mark.feature("E16")
@pytest.mark.parametrize(("batching", "runs"), [("dynamic_batching { }", 1), ("", 3)], ids=["together", "alone"])
async def test_each_request_of_a_batch_has_its_own_parameters(tmp_path: Path, batching: str, runs: int) -> None:
    log = tmp_path / "log"
    config = CONFIG.format(batching=batching, log=log)
    (onnx_models.configure(tmp_path / "models" / "m", config) / "1").mkdir()
    engine = Engine([tmp_path / "models"], LoadSettings(backend_directory=OWN))
    assert await engine.load_all() == []
    try:
        warmed_up = len(log.read_text().splitlines())
        answers = await infer(engine, request(3, 1), request(None, 2), request("0.5", 1))
        assert [rows_of(answer) for answer in answers] == [[6.0], [2.0, 2.0], [1.0]]
        assert len(log.read_text().splitlines()) == warmed_up + runs
        good, bad = await infer(engine, request(1, 1), request(0, 1))
        assert rows_of(good) == [2.0]
        assert isinstance(bad, BackendError)
    finally:
        engine.close()


async def test_its_answers_are_not_cached_because_the_cache_knows_inputs_only(tmp_path: Path) -> None:
    config = CONFIG.format(batching="response_cache { enable: true }", log=tmp_path / "log")
    (onnx_models.configure(tmp_path / "models" / "m", config) / "1").mkdir()
    engine = Engine([tmp_path / "models"], LoadSettings(backend_directory=OWN), response_cache=ResponseCache(1000))
    (error,) = await engine.load_all()
    assert "answers by the parameters of a request too" in str(error)
    engine.close()
