"""Models on disk, served: versions, refusals, and that batching changes no answer."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.errors import BackendError, FailureReason, InvalidArgument, NotFound, ServingError
from serving_runtime.common.request import InferRequest, InferResponse, Outcome, Tensor
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.engine.serving.statistics import statistics_message
from tests.serving_runtime import onnx_models

ALONE, TOGETHER = "max_batch_size: 8", "max_batch_size: 8 dynamic_batching { }"


def tensor(name: str, datatype: str, array: Array) -> Tensor:
    return Tensor(name, DATATYPES[datatype], array)


async def infer(engine: Engine, *requests: InferRequest) -> list[Outcome]:
    """Submit all requests in one pass of the loop, as requests that arrive together are, and return the outcomes."""
    loop = asyncio.get_running_loop()
    answers: list[asyncio.Future[Outcome]] = []
    for request in requests:
        answer: asyncio.Future[Outcome] = loop.create_future()
        answers.append(answer)
        try:
            engine.infer(request, answer.set_result)
        except ServingError as error:
            answer.set_result(error)
    return await asyncio.wait_for(asyncio.gather(*answers), 10)


def outputs(outcome: Outcome) -> dict[str, Array]:
    assert isinstance(outcome, InferResponse), outcome
    return {output.name: output.array for output in outcome.outputs}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Engine]]:
    """An engine with each model twice: every request alone, and batched; and the loop it lives on."""
    root = tmp_path_factory.mktemp("repository")
    for suffix, config in (("alone", ALONE), ("together", TOGETHER)):
        onnx_models.add(onnx_models.configure(root / f"add-{suffix}", config) / "1" / "model.onnx")
        onnx_models.mlp(onnx_models.configure(root / f"mlp-{suffix}", config) / "1" / "model.onnx")
        onnx_models.picky(onnx_models.configure(root / f"picky-{suffix}", config) / "1" / "model.onnx")
        onnx_models.identity(
            onnx_models.configure(root / f"wide-{suffix}", config) / "1" / "model.onnx", TensorProto.STRING, ("N", "W")
        )

    async def start() -> Engine:
        engine = Engine([root], LoadSettings())
        assert await engine.load_all() == []
        return engine

    with asyncio.Runner() as runner:
        engine = runner.run(start())
        yield runner, engine
        engine.close()


Rows = st.lists(st.integers(1, 8), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(rows=Rows, seed=st.integers(0, 2**32 - 1))
@pytest.mark.feature("C7")
def test_batched_integers_equal_unbatched_ones(
    served: tuple[asyncio.Runner, Engine], rows: list[int], seed: int
) -> None:
    runner, engine = served
    random = np.random.default_rng(seed)
    pairs = [random.integers(-(2**31), 2**31, (2, count, 4), dtype="i4") for count in rows]

    def requests(model: str) -> list[InferRequest]:
        return [InferRequest(model, "", (tensor("a", "INT32", a), tensor("b", "INT32", b))) for a, b in pairs]

    alone = runner.run(infer(engine, *requests("add-alone")))
    together = runner.run(infer(engine, *requests("add-together")))
    for one, other in zip(alone, together, strict=True):
        for name, array in outputs(one).items():
            assert np.array_equal(outputs(other)[name], array)


@settings(max_examples=60, deadline=None)
@given(rows=Rows, seed=st.integers(0, 2**32 - 1))
def test_batched_floats_equal_unbatched_ones(served: tuple[asyncio.Runner, Engine], rows: list[int], seed: int) -> None:
    runner, engine = served
    random = np.random.default_rng(seed)
    inputs = [random.standard_normal((count, 8)).astype("f4") for count in rows]

    def requests(model: str) -> list[InferRequest]:
        return [InferRequest(model, "", (tensor("x", "FP32", array),)) for array in inputs]

    alone = runner.run(infer(engine, *requests("mlp-alone")))
    together = runner.run(infer(engine, *requests("mlp-together")))
    for one, other in zip(alone, together, strict=True):
        assert outputs(one)["y"].shape == outputs(other)["y"].shape
        np.testing.assert_allclose(outputs(other)["y"], outputs(one)["y"], rtol=1e-5, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(widths=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=12))
def test_requests_of_different_shapes_keep_to_themselves(
    served: tuple[asyncio.Runner, Engine], widths: list[tuple[int, int]]
) -> None:
    runner, engine = served
    inputs = []
    for number, (rows, width) in enumerate(widths):
        array = np.empty((rows, width), dtype=object)
        array[:] = f"request {number}".encode()
        inputs.append(array)
    requests = [InferRequest("wide-together", "", (tensor("x", "BYTES", array),)) for array in inputs]
    for array, outcome in zip(inputs, runner.run(infer(engine, *requests)), strict=True):
        assert outputs(outcome)["y"].tolist() == array.tolist()


@settings(max_examples=40, deadline=None)
@given(indices=st.lists(st.integers(-9, 9), min_size=1, max_size=12))
def test_an_input_that_the_model_cannot_take_fails_alone(
    served: tuple[asyncio.Runner, Engine], indices: list[int]
) -> None:
    runner, engine = served

    def requests(model: str) -> list[InferRequest]:
        arrays = [np.array([[index]], "i8") for index in indices]
        return [InferRequest(model, "", (tensor("x", "INT64", array),)) for array in arrays]

    alone = runner.run(infer(engine, *requests("picky-alone")))
    together = runner.run(infer(engine, *requests("picky-together")))
    for index, one, other in zip(indices, alone, together, strict=True):
        assert isinstance(other, BackendError) is isinstance(one, BackendError) is (not -4 <= index <= 3)
        if isinstance(one, InferResponse):
            assert np.array_equal(outputs(other)["y"], outputs(one)["y"])


@pytest.mark.feature("C4", "P8")
async def test_versions_are_really_served(tmp_path: Path) -> None:
    folder = onnx_models.configure(tmp_path / "m", "version_policy { all { } }")
    onnx_models.identity(folder / "2" / "model.onnx")
    onnx_models.mlp(folder / "10" / "model.onnx", (4, 3))
    engine = Engine([tmp_path], LoadSettings())
    assert await engine.load_all() == []
    x = (tensor("x", "FP32", np.ones((1, 4), "f4")),)
    found = await infer(engine, *(InferRequest("m", version, x) for version in ("2", "10", "", "3")))
    assert [outcome.model_version for outcome in found if isinstance(outcome, InferResponse)] == ["2", "10", "10"]
    assert [outputs(outcome)["y"].shape for outcome in found[:3]] == [(1, 4), (1, 3), (1, 3)]
    assert isinstance(found[3], NotFound)
    assert str(found[3]) == "model 'm' has no version '3'; it serves 2, 10"
    assert engine.model_metadata("m")["versions"] == ["2", "10"]
    assert engine.model_metadata("m", "2")["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [-1, 4]}]
    engine.close()


@pytest.mark.feature("P2", "E5")
async def test_a_model_that_does_not_load_is_told_and_makes_the_server_not_ready(tmp_path: Path) -> None:
    onnx_models.identity(tmp_path / "good" / "1" / "model.onnx")
    (tmp_path / "bad" / "1").mkdir(parents=True)
    (tmp_path / "bad" / "1" / "model.onnx").write_text("no model")
    (tmp_path / "empty").mkdir()
    engine = Engine([tmp_path], LoadSettings())
    errors = await engine.load_all()
    assert [str(error).split(":")[0] for error in errors] == [
        "model 'bad' version 1",
        "model 'empty' has no version to serve",
    ]
    assert not engine.ready
    assert [(entry.name, entry.state) for entry in await engine.index(ready_only=False)] == [
        ("bad", "UNAVAILABLE"),
        ("empty", "UNAVAILABLE"),
        ("good", "READY"),
    ]
    assert [entry.name for entry in await engine.index(ready_only=True)] == ["good"]
    engine.close()


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        pytest.param('name: "other"', "config.pbtxt names it 'other'; it must be its folder's name", id="another name"),
        pytest.param('default_model_filename: "../x.onnx"', "must be a plain file name", id="a file elsewhere"),
        pytest.param('default_model_filename: "x.onnx"', "version 1: there is no x.onnx in", id="a file not there"),
    ],
)
@pytest.mark.feature("C3", "C22")
async def test_a_config_that_leads_elsewhere_refuses_the_load(tmp_path: Path, config: str, sentence: str) -> None:
    onnx_models.identity(onnx_models.configure(tmp_path / "m", config) / "1" / "model.onnx")
    engine = Engine([tmp_path], LoadSettings())
    (error,) = await engine.load_all()
    assert sentence in str(error)


@pytest.mark.feature("C24")
async def test_without_completion_a_config_must_be_whole(tmp_path: Path) -> None:
    folder = onnx_models.configure(tmp_path / "m", 'backend: "onnxruntime"')
    onnx_models.identity(folder / "1" / "model.onnx")
    settings_off = LoadSettings(auto_complete=False)
    (error,) = await Engine([tmp_path], settings_off).load_all()
    assert "must list every input" in str(error)
    whole = 'input { name: "x" data_type: TYPE_FP32 dims: [4] } output { name: "y" data_type: TYPE_FP32 dims: [4] }'
    onnx_models.configure(tmp_path / "m", f'backend: "onnxruntime" max_batch_size: 2 {whole}')
    engine = Engine([tmp_path], settings_off)
    assert await engine.load_all() == []
    assert engine.servable("m").config.batching is None
    engine.close()


@pytest.mark.feature("E9")
async def test_statistics_tell_successes_failures_and_batches(tmp_path: Path) -> None:
    onnx_models.picky(onnx_models.configure(tmp_path / "m", TOGETHER) / "1" / "model.onnx")
    engine = Engine([tmp_path], LoadSettings())
    await engine.load_all()

    def request(*indices: int) -> InferRequest:
        return InferRequest("m", "", (tensor("x", "INT64", np.array([indices], "i8").T),))

    await infer(engine, request(0), request(1, 2), InferRequest("m", "", ()))
    await infer(engine, request(77))
    (stats,) = statistics_message(engine.selected("m", "")).model_stats
    assert (stats.inference_count, stats.execution_count) == (3, 1)
    assert (stats.inference_stats.success.count, stats.inference_stats.fail.count) == (2, 2)
    assert [(batch.batch_size, batch.compute_infer.count) for batch in stats.batch_stats] == [(3, 1)]
    failures = engine.servable("m").statistics.failures
    assert (failures[FailureReason.BACKEND], failures[FailureReason.OTHER]) == (1, 1)
    assert engine.inflight == 0
    engine.close()


@pytest.mark.parametrize("value", [-1, "soon", True, 1.5, 2**64])
@pytest.mark.feature("E14")
async def test_a_timeout_that_is_no_number_is_refused(tmp_path: Path, value: object) -> None:
    onnx_models.identity(onnx_models.configure(tmp_path / "m", TOGETHER) / "1" / "model.onnx")
    engine = Engine([tmp_path], LoadSettings())
    await engine.load_all()
    x = (tensor("x", "FP32", np.ones((1, 4), "f4")),)
    (outcome,) = await infer(engine, InferRequest("m", "", x, parameters={"timeout": value}))
    assert isinstance(outcome, InvalidArgument)
    assert "'timeout' must be an unsigned integer" in str(outcome)
    engine.close()


OPTIONAL = """max_batch_size: 8 dynamic_batching { }
    input { name: "x" data_type: TYPE_FP32 dims: [2] }
    input { name: "factor" data_type: TYPE_FP32 dims: [1] optional: true }"""


@pytest.mark.feature("C2")
async def test_an_optional_input_may_be_left_out_and_only_like_requests_are_joined(tmp_path: Path) -> None:
    onnx_models.scaled(onnx_models.configure(tmp_path / "m", OPTIONAL) / "1" / "model.onnx")
    engine = Engine([tmp_path], LoadSettings())
    assert await engine.load_all() == []
    x = tensor("x", "FP32", np.array([[1, 2]], "f4"))
    factor = tensor("factor", "FP32", np.array([[3]], "f4"))
    requests = [InferRequest("m", "", inputs) for inputs in ((x,), (x,), (x, factor), (x, factor), (factor,), (x, x))]
    found = await infer(engine, *requests)
    assert [outputs(outcome)["y"].tolist() for outcome in found[:4]] == [[[10, 20]]] * 2 + [[[3, 6]]] * 2
    assert "input 'x' is missing" in str(found[4])
    assert "given twice" in str(found[5])
    assert engine.servable("m").statistics.executions == 2
    engine.close()


@pytest.mark.feature("C2")
async def test_an_input_that_the_file_needs_cannot_be_optional(tmp_path: Path) -> None:
    config = OPTIONAL.replace('"factor"', '"b"').replace('"x"', '"a"').replace("dims: [1]", "dims: [2]")
    onnx_models.add(onnx_models.configure(tmp_path / "m", config) / "1" / "model.onnx", TensorProto.FLOAT, ("N", 2))
    (error,) = await Engine([tmp_path], LoadSettings()).load_all()
    assert str(error) == (
        "model 'm': input 'b' is optional in config.pbtxt, but the model's file has no value of its own for it"
    )


@pytest.mark.feature("C2")
async def test_a_reshape_with_a_variable_dimension(tmp_path: Path) -> None:
    config = """max_batch_size: 4 dynamic_batching { }
        input { name: "x" data_type: TYPE_FP32 dims: [-1] reshape { shape: [-1, 1] } }
        output { name: "y" data_type: TYPE_FP32 dims: [-1] reshape { shape: [-1, 1] } }"""
    onnx_models.identity(
        onnx_models.configure(tmp_path / "m", config) / "1" / "model.onnx", TensorProto.FLOAT, ("N", "W", 1)
    )
    engine = Engine([tmp_path], LoadSettings())
    assert await engine.load_all() == []
    inputs = [np.arange(rows * width, dtype="f4").reshape(rows, width) for rows, width in ((1, 3), (2, 5), (1, 3))]
    found = await infer(engine, *(InferRequest("m", "", (tensor("x", "FP32", array),)) for array in inputs))
    for array, outcome in zip(inputs, found, strict=True):
        assert outputs(outcome)["y"].tolist() == array.tolist()
    assert engine.model_metadata("m")["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, -1]}]
    engine.close()
