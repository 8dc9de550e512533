"""Models with ragged batching, served: requests of different shapes run together and answer as each alone."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.request import InferRequest, InferResponse, Outcome, Tensor
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from tests.serving_runtime import onnx_models

pytestmark = pytest.mark.feature("C21")

CONFIG = """max_batch_size: 16 dynamic_batching { }
    input { name: "x" data_type: TYPE_FP32 dims: [-1] allow_ragged_batch: true }
    output { name: "sum" data_type: TYPE_FP32 dims: [1] }
    output { name: "doubled" data_type: TYPE_FP32 dims: [-1] }
    batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO target_name: "ends" data_type: TYPE_INT32
        source_input: "x" }
    batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "doubled" source_input: "x" }
"""


def request(array: Array) -> InferRequest:
    return InferRequest("m", "", (Tensor("x", DATATYPES["FP32"], array),))


async def infer(engine: Engine, *requests: InferRequest) -> list[Outcome]:
    loop = asyncio.get_running_loop()
    answers: list[asyncio.Future[Outcome]] = [loop.create_future() for _ in requests]
    for sent, answer in zip(requests, answers, strict=True):
        engine.infer(sent, answer.set_result)
    return await asyncio.wait_for(asyncio.gather(*answers), 10)


def outputs(outcome: Outcome) -> dict[str, Array]:
    assert isinstance(outcome, InferResponse), outcome
    return {output.name: output.array for output in outcome.outputs}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Engine]]:
    root = tmp_path_factory.mktemp("repository")
    onnx_models.segments(onnx_models.configure(root / "m", CONFIG) / "1" / "model.onnx")

    async def start() -> Engine:
        engine = Engine([root], LoadSettings())
        assert await engine.load_all() == []
        return engine

    with asyncio.Runner() as runner:
        engine = runner.run(start())
        yield runner, engine
        engine.close()


@settings(max_examples=60, deadline=None)
@given(widths=st.lists(st.integers(1, 9), min_size=1, max_size=16), seed=st.integers(0, 2**32 - 1))
def test_requests_of_different_widths_run_together_and_answer_as_each_alone(
    served: tuple[asyncio.Runner, Engine], widths: list[int], seed: int
) -> None:
    runner, engine = served
    random = np.random.default_rng(seed)
    inputs = [random.integers(-50, 50, (1, width)).astype("f4") for width in widths]
    before = engine.servable("m").statistics.executions
    found = runner.run(infer(engine, *[request(array) for array in inputs]))
    for array, outcome in zip(inputs, found, strict=True):
        assert outputs(outcome)["sum"].tolist() == [[array.sum()]]
        assert outputs(outcome)["doubled"].tolist() == (array * 2).tolist()
    assert engine.servable("m").statistics.executions - before <= 2


async def test_without_allow_ragged_batch_only_like_shapes_are_joined(tmp_path: Path) -> None:
    config = """max_batch_size: 16 dynamic_batching { }
        input { name: "x" data_type: TYPE_FP32 dims: [-1] } output { name: "y" data_type: TYPE_FP32 dims: [-1] }"""
    onnx_models.identity(onnx_models.configure(tmp_path / "m", config) / "1" / "model.onnx", shape=("N", "W"))
    engine = Engine([tmp_path], LoadSettings())
    assert await engine.load_all() == []
    await infer(engine, *[request(np.zeros((1, width), "f4")) for width in (1, 2)])
    assert engine.servable("m").statistics.executions == 2
    engine.close()


async def test_what_is_made_for_a_batch_is_no_input_of_clients(served: tuple[asyncio.Runner, Engine]) -> None:
    _, engine = served
    assert engine.model_metadata("m")["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, -1]}]


@pytest.mark.feature("C11")
async def test_warm_up_samples_are_batches_of_their_own(tmp_path: Path) -> None:
    sample = """model_warmup { name: "w" batch_size: 1
        inputs { key: "x" value { data_type: TYPE_FP32 dims: [5] random_data: true } } }"""
    onnx_models.segments(onnx_models.configure(tmp_path / "m", CONFIG + sample) / "1" / "model.onnx")
    engine = Engine([tmp_path], LoadSettings())
    assert await engine.load_all() == []
    engine.close()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(
            ('target_name: "ends"', 'target_name: "begins"'),
            "batch_input 'begins' is TYPE_INT32, but not among its inputs, x, ends",
            id="an input that the file has not",
        ),
        pytest.param(
            ("TYPE_INT32", "TYPE_FP32"),
            "batch_input 'ends' is TYPE_FP32, but TYPE_INT32 in the model's file",
            id="another type",
        ),
        pytest.param(
            (" allow_ragged_batch: true", ""), "input 'x' has shape [-1, -1] in config.pbtxt, but [-1]", id="not ragged"
        ),
        pytest.param(('target_name: "ends"', ""), "batch_input must have a target_name", id="no target"),
        pytest.param(("TYPE_INT32", "TYPE_INT64"), "must be TYPE_INT32 or TYPE_FP32, found TYPE_INT64", id="INT64"),
        pytest.param(
            ('\n        source_input: "x"', ""), "one source_input, an input of the model; found none", id="no source"
        ),
        pytest.param(
            ('"doubled" source', '"tripled" source'), "that is an output of the model; found 'tripled'", id="no output"
        ),
        pytest.param(("max_batch_size: 16 dynamic_batching { }", ""), "need max_batch_size > 0", id="no batches"),
        pytest.param(
            ("dynamic_batching { }", "sequence_batching { }"),
            "ragged batching of sequence_batching is not supported",
            id="sequences",
        ),
        pytest.param(
            ("allow_ragged_batch: true", "allow_ragged_batch: true optional: true"),
            "cannot be optional or reshaped",
            id="an optional input",
        ),
    ],
)
async def test_a_config_that_makes_no_sense_is_refused(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    assert change[0] in CONFIG
    config = CONFIG.replace(*change)
    onnx_models.segments(onnx_models.configure(tmp_path / "m", config) / "1" / "model.onnx")
    (error,) = await Engine([tmp_path], LoadSettings()).load_all()
    assert sentence in str(error)
