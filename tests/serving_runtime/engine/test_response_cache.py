"""Models with a response cache, served."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import BackendError
from serving_runtime.common.request import InferRequest, InferResponse, Outcome, Tensor
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.engine.serving.statistics import statistics_message
from serving_runtime.scheduler.cache.response_cache import ResponseCache
from serving_runtime.telemetry.metrics.families import families
from serving_runtime.telemetry.metrics.settings import MetricsSettings
from tests.serving_runtime import onnx_models

pytestmark = pytest.mark.feature("C12")

CACHED = "max_batch_size: 8 dynamic_batching { } response_cache { enable: true }"


def request(*rows: int, outputs: tuple[str, ...] = (), model: str = "m") -> InferRequest:
    array = np.array([[row] * 4 for row in rows], "i4")
    tensors = tuple(Tensor(name, DATATYPES["INT32"], array) for name in ("a", "b"))
    return InferRequest(model, "", tensors, outputs, id=str(rows))


async def infer(engine: Engine, *requests: InferRequest) -> list[Outcome]:
    loop = asyncio.get_running_loop()
    answers: list[asyncio.Future[Outcome]] = [loop.create_future() for _ in requests]
    for sent, answer in zip(requests, answers, strict=True):
        engine.infer(sent, answer.set_result)
    return await asyncio.wait_for(asyncio.gather(*answers), 10)


def answered(outcome: Outcome) -> dict[str, object]:
    assert isinstance(outcome, InferResponse), outcome
    return {output.name: output.array.tolist() for output in outcome.outputs}


async def engine_of(folder: Path, *, size: int = 100_000) -> Engine:
    engine = Engine([folder], LoadSettings(), response_cache=ResponseCache(size) if size else None)
    assert await engine.load_all() == []
    return engine


@pytest.mark.feature("M6")
async def test_an_answer_that_is_known_is_given_without_the_model(tmp_path: Path) -> None:
    onnx_models.add(onnx_models.configure(tmp_path / "m", CACHED) / "1" / "model.onnx")
    engine = await engine_of(tmp_path)
    first = await infer(engine, request(1), request(2, 3))
    again = await infer(engine, request(2, 3), request(1, outputs=("difference",)), request(2))
    assert answered(again[0]) == answered(first[1])
    assert answered(again[1]) == {"difference": [[0] * 4]}
    assert answered(again[2])["sum"] == [[4] * 4]
    assert [outcome.id for outcome in again if isinstance(outcome, InferResponse)] == ["(2, 3)", "(1,)", "(2,)"]
    statistics = engine.servable("m").statistics
    assert (statistics.executions, statistics.inferences, statistics.successes, statistics.inflight) == (2, 4, 5, 0)
    (told,) = statistics_message(engine.selected("m", "")).model_stats
    durations = told.inference_stats
    assert (durations.success.count, durations.queue.count, durations.compute_infer.count) == (5, 3, 3)
    assert (durations.cache_hit.count, durations.cache_miss.count) == (2, 3)
    assert durations.cache_hit.ns > 0
    assert durations.cache_miss.ns > 0
    shown = {family.name: family.samples for family in families(engine.series(), MetricsSettings())}
    labels = {"model": "m", "version": "1"}
    assert shown["nv_cache_num_hits_per_model"] == [(labels, 2)]
    assert shown["nv_cache_num_misses_per_model"] == [(labels, 3)]
    engine.close()


async def test_without_a_cache_of_the_server_or_a_word_of_the_model_nothing_is_kept(tmp_path: Path) -> None:
    onnx_models.add(onnx_models.configure(tmp_path / "m", CACHED) / "1" / "model.onnx")
    onnx_models.add(onnx_models.configure(tmp_path / "plain", "max_batch_size: 8") / "1" / "model.onnx")
    for size, models in ((0, ("m", "plain")), (100_000, ("plain",))):
        engine = await engine_of(tmp_path, size=size)
        for model in models:
            for _ in range(2):
                await infer(engine, request(1, model=model))
            statistics = engine.servable(model).statistics
            assert (statistics.executions, statistics.cache_hits, statistics.cache_misses) == (2, 0, 0)
        engine.close()


async def test_errors_are_not_kept(tmp_path: Path) -> None:
    onnx_models.picky(onnx_models.configure(tmp_path / "m", CACHED) / "1" / "model.onnx")
    engine = await engine_of(tmp_path)
    wrong = InferRequest("m", "", (Tensor("x", DATATYPES["INT64"], np.array([[77]], "i8")),))
    for _ in range(2):
        (outcome,) = await infer(engine, wrong)
        assert isinstance(outcome, BackendError)
    assert engine.servable("m").statistics.cache_hits == 0
    engine.close()


async def test_versions_do_not_share_answers(tmp_path: Path) -> None:
    folder = onnx_models.configure(tmp_path / "m", f"{CACHED} version_policy {{ all {{ }} }}")
    onnx_models.mlp(folder / "1" / "model.onnx", (4, 3))
    onnx_models.mlp(folder / "2" / "model.onnx", (4, 2))
    engine = await engine_of(tmp_path)
    x = (Tensor("x", DATATYPES["FP32"], np.ones((1, 4), "f4")),)
    found = await infer(engine, *[InferRequest("m", version, x) for version in ("1", "2", "1", "2")])
    shapes = [outcome.outputs[0].array.shape for outcome in found if isinstance(outcome, InferResponse)]
    assert shapes == [(1, 3), (1, 2), (1, 3), (1, 2)]
    engine.close()


async def test_a_hit_that_is_cancelled_is_told_to_nobody(tmp_path: Path) -> None:
    onnx_models.add(onnx_models.configure(tmp_path / "m", CACHED) / "1" / "model.onnx")
    engine = await engine_of(tmp_path)
    await infer(engine, request(1))
    told: list[Outcome] = []
    engine.infer(request(1), told.append).cancel()
    await infer(engine, request(1))
    assert told == []
    assert engine.inflight == 0
    engine.close()
