"""Ensembles, served: composition, branches, failures, cancellation, and what becomes of them when their models go."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.errors import FailureReason, InvalidArgument, ModelError, ServingError, Unavailable
from serving_runtime.common.request import InferRequest, InferResponse, Outcome, Tensor
from serving_runtime.engine.lifecycle.control_mode import Control
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.scheduler.job import Job
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.engines import EXPLICIT, POLL, engine_of, states, until

pytestmark = pytest.mark.feature("C10")


def tensor(name: str, array: Array, datatype: str = "INT32") -> Tensor:
    return Tensor(name, DATATYPES[datatype], array)


def send(engine: Engine, request: InferRequest) -> tuple[asyncio.Future[Outcome], Job | None]:
    answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    try:
        return answer, engine.infer(request, answer.set_result)
    except ServingError as error:
        answer.set_result(error)
        return answer, None


async def infer(engine: Engine, *requests: InferRequest) -> list[Outcome]:
    return await asyncio.wait_for(asyncio.gather(*[send(engine, request)[0] for request in requests]), 10)


def outputs(outcome: Outcome) -> dict[str, Array]:
    assert isinstance(outcome, InferResponse), outcome
    return {output.name: output.array for output in outcome.outputs}


def step(model: str, inputs: dict[str, str], made: dict[str, str], version: int = -1) -> dict[str, Any]:
    return {"model_name": model, "model_version": version, "input_map": inputs, "output_map": made}


def config(
    inputs: list[str], made: list[str], *steps: dict[str, Any], dims: int = 4, limit: int = 8, kind: str = "TYPE_INT32"
) -> dict[str, Any]:
    tensors = [[{"name": name, "data_type": kind, "dims": [dims]} for name in names] for names in (inputs, made)]
    return {
        "platform": "ensemble",
        "max_batch_size": limit,
        "input": tensors[0],
        "output": tensors[1],
        "ensemble_scheduling": {"step": list(steps)},
    }


def pbtxt(value: object) -> str:
    """Return a config in protobuf's text format; maps are those whose name ends in _map."""
    if not isinstance(value, dict):
        quoted = isinstance(value, str) and not value.startswith("TYPE_")
        return json.dumps(value) if quoted else str(value)
    lines = []
    for key, item in value.items():
        if key.endswith("_map"):
            lines += [f'{key} {{ key: "{name}" value: "{one}" }}' for name, one in item.items()]
        else:
            for one in item if isinstance(item, list) else [item]:
                lines.append(f"{key} {{ {pbtxt(one)} }}" if isinstance(one, dict) else f"{key}: {pbtxt(one)}")
    return " ".join(lines)


def ensemble(root: Path, name: str, content: dict[str, Any]) -> Path:
    (root / name / "1").mkdir(parents=True, exist_ok=True)
    return onnx_models.configure(root / name, pbtxt(content))


def adder(root: Path, name: str = "add", config: str = "max_batch_size: 8 dynamic_batching { }") -> Path:
    """a, b -> sum, difference: INT32 [N,4]."""
    return onnx_models.add(onnx_models.configure(root / name, config) / "1" / "model.onnx")


def ones(value: int = 1) -> Array:
    return np.full((1, 4), value, "i4")


TWICE = config(
    ["x"], ["y"], step("add", {"a": "x", "b": "x"}, {"sum": "u"}), step("add", {"a": "u", "b": "x"}, {"sum": "y"})
)
"""y = 3 x"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Engine]]:
    root = tmp_path_factory.mktemp("repository")
    adder(root)
    adder(root, "alone", "max_batch_size: 8 instance_group { count: 2 }")
    ensemble(root, "e", TWICE)

    async def start() -> Engine:
        engine = Engine([root], LoadSettings(), EXPLICIT)
        assert await engine.load_all() == []
        return engine

    with asyncio.Runner() as runner:
        engine = runner.run(start())
        yield runner, engine
        engine.close()


@settings(max_examples=40, deadline=None)
@given(
    wiring=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), min_size=1, max_size=6),
    asked=st.lists(st.integers(0, 11), min_size=1, max_size=3),
    rows=st.lists(st.integers(1, 8), min_size=1, max_size=5),
    seed=st.integers(0, 2**32 - 1),
)
def test_an_ensemble_answers_as_its_models_composed_by_hand(
    served: tuple[asyncio.Runner, Engine],
    wiring: list[tuple[int, int, bool]],
    asked: list[int],
    rows: list[int],
    seed: int,
) -> None:
    """Random graphs of a + b and a - b: each step takes two of the tensors before it and makes two."""
    runner, engine = served
    names = ["x", "z"]
    steps, taken = [], set()
    for number, (left, right, alone) in enumerate(wiring):
        a, b = names[left % len(names)], names[right % len(names)]
        made = {"sum": f"s{number}", "difference": f"d{number}"}
        steps.append(step("alone" if alone else "add", {"a": a, "b": b}, made))
        names += made.values()
        taken |= {a, b}
    made_names = [name for name in names if name not in ("x", "z")]
    wanted = sorted({made_names[one % len(made_names)] for one in asked})
    inputs = sorted(taken & {"x", "z"})

    def by_hand(given: dict[str, Array]) -> dict[str, Array]:
        tensors = dict(given)
        for one in steps:
            a, b = tensors[one["input_map"]["a"]], tensors[one["input_map"]["b"]]
            tensors[one["output_map"]["sum"]], tensors[one["output_map"]["difference"]] = a + b, a - b
        return tensors

    async def play(sent: list[dict[str, Array]]) -> list[Outcome]:
        steps_of_config = steps[::-1] if seed % 2 else steps  # their order in the file does not matter
        await engine.load("e", json.dumps(config(inputs, wanted, *steps_of_config)))
        requests = [InferRequest("e", "", tuple(tensor(*one) for one in given.items())) for given in sent]
        return await infer(engine, *requests)

    random = np.random.default_rng(seed)
    sent = [{name: random.integers(-1000, 1000, (count, 4), "i4") for name in inputs} for count in rows]
    for given_tensors, outcome in zip(sent, runner.run(play(sent)), strict=True):
        expected = by_hand(given_tensors)
        found = outputs(outcome)
        assert list(found) == wanted
        for name, array in found.items():
            assert np.array_equal(array, expected[name])


async def test_an_ensemble_is_a_model_like_any_other(tmp_path: Path) -> None:
    adder(tmp_path)
    ensemble(tmp_path, "all", TWICE)
    async with engine_of(tmp_path, control=Control()) as engine:
        assert engine.model_ready("all")
        assert engine.model_metadata("all") == {
            "name": "all",
            "versions": ["1"],
            "platform": "ensemble",
            "inputs": [{"name": "x", "datatype": "INT32", "shape": [-1, 4]}],
            "outputs": [{"name": "y", "datatype": "INT32", "shape": [-1, 4]}],
        }
        request = InferRequest("all", "1", (tensor("x", ones()),), id="7")
        (outcome,) = await infer(engine, request)
        assert isinstance(outcome, InferResponse)
        assert (outcome.model_name, outcome.model_version, outcome.id) == ("all", "1", "7")
        assert outputs(outcome)["y"].tolist() == [[3, 3, 3, 3]]
        refused = await infer(
            engine,
            InferRequest("all", "", (tensor("x", np.ones((9, 4), "i4")),)),
            InferRequest("all", "", (tensor("q", ones()),)),
            InferRequest("all", "", (tensor("x", ones()),), outputs=("u",)),
        )
        assert all(isinstance(error, InvalidArgument) for error in refused)


async def test_steps_join_the_requests_of_others_and_everybody_is_counted(tmp_path: Path) -> None:
    adder(tmp_path)
    ensemble(tmp_path, "e", TWICE)
    async with engine_of(tmp_path, control=Control()) as engine:
        found = await infer(engine, *[InferRequest("e", "", (tensor("x", ones(number)),)) for number in range(1, 5)])
        assert [outputs(outcome)["y"].tolist() for outcome in found] == [[[3 * number] * 4] for number in range(1, 5)]
        part, whole = engine.servable("add").statistics, engine.servable("e").statistics
        assert (part.successes, part.executions) == (8, 2)
        assert (whole.successes, whole.inferences, whole.inflight, whole.finished) == (4, 4, 0, 4)
        assert whole.request_latency.sum_ns >= whole.infer_ns > 0


async def test_tensors_are_handed_on_without_copies(tmp_path: Path) -> None:
    adder(tmp_path, config="max_batch_size: 8")
    ensemble(tmp_path, "e", TWICE)
    async with engine_of(tmp_path, control=Control()) as engine:
        seen: list[Array] = []
        model = engine.servable("add").model
        run = model.run

        def watched(inputs: list[Array]) -> list[Array]:
            seen.extend(inputs)
            made: list[Array] = run(inputs)
            seen.extend(made)
            return made

        engine.servable("add").scheduler._run = watched  # type: ignore[attr-defined]
        engine.servable("add").scheduler._meter.inline = True  # type: ignore[attr-defined]
        x = ones()
        (outcome,) = await infer(engine, InferRequest("e", "", (tensor("x", x),)))
        assert all(array is x for array in (seen[0], seen[1], seen[5]))
        assert seen[4] is seen[2]  # what the first step made
        assert outputs(outcome)["y"] is seen[6]


async def test_a_failing_step_fails_its_request_and_no_other(tmp_path: Path) -> None:
    onnx_models.picky(
        onnx_models.configure(tmp_path / "picky", "max_batch_size: 8 dynamic_batching { }") / "1" / "model.onnx"
    )
    content = config(["x"], ["y"], step("picky", {"x": "x"}, {"y": "y"}), dims=1, kind="TYPE_INT64")
    content["output"] = [{"name": "y", "data_type": "TYPE_FP32", "dims": [1, 2]}]
    ensemble(tmp_path, "e", content)
    async with engine_of(tmp_path, control=Control()) as engine:
        requests = [InferRequest("e", "", (tensor("x", np.array([[index]], "i8"), "INT64"),)) for index in (0, 77, 1)]
        found = await infer(engine, *requests)
        assert [outputs(found[place])["y"].tolist() for place in (0, 2)] == [[[[0, 1]]], [[[2, 3]]]]
        assert str(found[1]).startswith("in ensemble 'e', the model failed: ")
        statistics = engine.servable("e").statistics
        assert (statistics.successes, statistics.failures[FailureReason.BACKEND], statistics.inflight) == (2, 1, 0)


async def test_a_step_that_is_refused_refuses_the_request(tmp_path: Path) -> None:
    full = "max_batch_size: 1 dynamic_batching { default_queue_policy { max_queue_size: 1 } }"
    adder(tmp_path, config=full)
    ensemble(tmp_path, "e", {**TWICE, "max_batch_size": 1})
    async with engine_of(tmp_path, control=Control()) as engine:
        found = await infer(engine, *[InferRequest("e", "", (tensor("x", ones()),)) for _ in range(3)])
        assert any(
            isinstance(outcome, Unavailable) and "in ensemble 'e', Exceeds maximum queue size" in str(outcome)
            for outcome in found
        )
        assert engine.servable("e").statistics.inflight == 0


async def test_branches_run_at_the_same_time_and_only_what_is_asked_for(tmp_path: Path) -> None:
    adder(tmp_path, "left", "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 100000000 }")
    adder(tmp_path, "right", "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 100000000 }")
    steps = [step("left", {"a": "x", "b": "x"}, {"sum": "y"}), step("right", {"a": "x", "b": "x"}, {"difference": "z"})]
    ensemble(tmp_path, "e", config(["x"], ["y", "z"], *steps))
    async with engine_of(tmp_path, control=Control()) as engine:
        answer, job = send(engine, InferRequest("e", "", (tensor("x", ones()),)))
        assert job is not None
        pending = [engine.servable(name).scheduler.pending for name in ("left", "right")]
        assert pending == [1, 1]
        job.cancel()
        assert [engine.servable(name).scheduler.pending for name in ("left", "right")] == [0, 0]
        for name in ("left", "right", "e"):
            assert engine.servable(name).statistics.failures[FailureReason.CANCELED] == 1
            assert engine.servable(name).statistics.inflight == 0
        assert not answer.done()
        assert engine.inflight == 0
        (outcome,) = await infer(engine, InferRequest("e", "", (tensor("x", np.ones((8, 4), "i4")),), outputs=("z",)))
        assert list(outputs(outcome)) == ["z"]
        assert engine.servable("left").statistics.executions == 0


async def test_a_request_that_is_cancelled_between_steps_begins_no_other(tmp_path: Path) -> None:
    adder(tmp_path)
    adder(tmp_path, "slow", "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 100000000 }")
    adder(tmp_path, "last")
    steps = [
        step("add", {"a": "x", "b": "x"}, {"sum": "u"}),
        step("slow", {"a": "u", "b": "x"}, {"sum": "v"}),
        step("last", {"a": "v", "b": "x"}, {"sum": "y"}),
    ]
    ensemble(tmp_path, "e", config(["x"], ["y"], *steps))
    async with engine_of(tmp_path, control=Control()) as engine:
        slow = engine.servable("slow")
        answer, job = send(engine, InferRequest("e", "", (tensor("x", ones()),)))
        assert job is not None
        await until(lambda: slow.scheduler.pending == 1, "the second step waits")
        job.cancel()
        assert (slow.scheduler.pending, slow.statistics.failures[FailureReason.CANCELED]) == (0, 1)
        assert engine.servable("add").statistics.successes == 1
        assert engine.servable("last").statistics.accepted == 0
        assert not answer.done()


async def test_an_ensemble_of_ensembles_of_a_model_of_sequences(tmp_path: Path) -> None:
    """Parameters and ids go to every step, through ensembles."""
    total = """max_batch_size: 4 sequence_batching {
        state { input_name: "total_in" output_name: "total_out" data_type: TYPE_FP32 dims: [2] } }"""
    onnx_models.running_total(onnx_models.configure(tmp_path / "total", total) / "1" / "model.onnx")
    kind = {"dims": 2, "limit": 4, "kind": "TYPE_FP32"}
    ensemble(tmp_path, "inner", config(["i"], ["o"], step("total", {"x": "i"}, {"sum": "o"}), **kind))  # type: ignore[arg-type]
    ensemble(tmp_path, "a", config(["x"], ["y"], step("inner", {"i": "x"}, {"o": "y"}, 1), **kind))  # type: ignore[arg-type]
    async with engine_of(tmp_path, control=Control()) as engine:

        def request(value: float, *, start: bool = False) -> InferRequest:
            x = tensor("x", np.full((1, 2), value, "f4"), "FP32")
            return InferRequest("a", "", (x,), parameters={"sequence_id": 5, "sequence_start": start})

        found = await infer(engine, request(9), request(1, start=True), request(2))
        assert str(found[0]).startswith(
            "in ensemble 'a', in ensemble 'inner', inference request for sequence 5 to model 'total' must specify the "
            "START flag"
        )
        assert [outputs(outcome)["y"].tolist() for outcome in found[1:]] == [[[1, 1]], [[3, 3]]]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(
            config(["x"], ["y"], step("nobody", {"a": "x"}, {"sum": "y"})),
            "ensemble 'e' contains model 'nobody', which is not available: failed to load 'nobody', there is no such",
            id="a model that is not there",
        ),
        pytest.param(
            config(["x"], ["y"], step("broken", {"a": "x"}, {"sum": "y"})),
            "ensemble 'e' contains model 'broken', which is not available: model 'broken' version 1",
            id="a model that does not load",
        ),
        pytest.param(
            config(["x"], ["y"], step("add", {"a": "x", "b": "x"}, {"sum": "y"}, 7)),
            "ensemble 'e' contains model 'add' version 7, which is not loaded",
            id="a version that is not served",
        ),
        pytest.param(
            config(["x"], ["y"], step("add", {"a": "x"}, {"sum": "y"})),
            "step of model 'add': input_map leaves out input 'b'",
            id="an input that nobody gives",
        ),
        pytest.param(
            config(["x"], ["y"], step("add", {"a": "x", "b": "x", "c": "x"}, {"sum": "y"})),
            "step of model 'add': input_map names 'c', but the model has a, b",
            id="an input that the model has not",
        ),
        pytest.param(
            config(["x"], ["y"], step("add", {"a": "x", "b": "x"}, {"product": "y"})),
            "step of model 'add': output_map names 'product', but the model has sum, difference",
            id="an output that the model has not",
        ),
        pytest.param(
            config(["x"], ["y"], step("add", {"a": "x", "b": "x"}, {"sum": "y"}), kind="TYPE_FP32"),
            "input 'a' is INT32 [-1, 4], but tensor 'x' is FP32 [-1, 4] as the ensemble says",
            id="another datatype",
        ),
        pytest.param(
            config(["x"], ["y"], step("add", {"a": "x", "b": "x"}, {"sum": "y"}), dims=3),
            "input 'a' is INT32 [-1, 4], but tensor 'x' is INT32 [-1, 3] as the ensemble says",
            id="another shape",
        ),
        pytest.param(
            config(["x"], ["y"], step("add", {"a": "x", "b": "x"}, {"sum": "u"}), step("wide", {"x": "u"}, {"y": "y"})),
            "input 'x' is INT32 [-1, 5], but tensor 'u' is INT32 [-1, 4] as output 'sum' of model 'add' says",
            id="models that do not fit each other",
        ),
        pytest.param(
            config(["x"], ["y"], step("add", {"a": "x", "b": "x"}, {"sum": "y"}), limit=9),
            "allows maximum batch size 9, but it contains model 'add', which only allows maximum batch size 8",
            id="larger batches than a model takes",
        ),
        pytest.param(
            config(["x"], ["y"], step("e", {"x": "x"}, {"y": "y"})),
            "circular dependency between ensembles: e -> e",
            id="itself",
        ),
        pytest.param(
            config(["x"], ["y"], step("f", {"x": "x"}, {"y": "y"})),
            "circular dependency between ensembles: ",
            id="two ensembles of each other",
        ),
        pytest.param(
            config(["x"], [], step("add", {"a": "x", "b": "x"}, {"sum": "y"})),
            "ensemble_scheduling needs every output listed",
            id="no outputs",
        ),
    ],
)
async def test_an_ensemble_that_does_not_fit_its_models_is_refused(
    tmp_path: Path, content: dict[str, Any], sentence: str
) -> None:
    adder(tmp_path)
    onnx_models.identity(tmp_path / "wide" / "1" / "model.onnx", TensorProto.INT32, ("N", 5))
    onnx_models.configure(tmp_path / "wide", "max_batch_size: 8")
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "broken" / "1" / "model.onnx").write_text("no model")
    ensemble(tmp_path, "e", content)
    ensemble(tmp_path, "f", config(["x"], ["y"], step("e", {"x": "x"}, {"y": "y"})))
    async with engine_of(tmp_path) as engine:
        with pytest.raises(ModelError) as caught:
            await asyncio.wait_for(engine.load("e"), 10)
        assert sentence in str(caught.value)
        assert not engine.model_ready("e")
    engine = Engine([tmp_path], LoadSettings())
    errors = await asyncio.wait_for(engine.load_all(), 10)
    assert any(sentence in str(error) for error in errors)
    engine.close()


async def test_a_model_without_a_batch_dimension_may_be_a_step_where_its_shape_says_so(tmp_path: Path) -> None:
    whole = """max_batch_size: 0 input { name: "x" data_type: TYPE_INT32 dims: [-1, 4] }
        output { name: "y" data_type: TYPE_INT32 dims: [-1, 4] }"""
    onnx_models.identity(onnx_models.configure(tmp_path / "whole", whole) / "1" / "model.onnx", TensorProto.INT32)
    ensemble(tmp_path, "e", config(["x"], ["y"], step("whole", {"x": "x"}, {"y": "y"}), limit=64))
    async with engine_of(tmp_path, control=Control()) as engine:
        (outcome,) = await infer(engine, InferRequest("e", "", (tensor("x", np.ones((33, 4), "i4")),)))
        assert outputs(outcome)["y"].shape == (33, 4)


@pytest.mark.feature("E6", "E7")
async def test_models_are_loaded_with_their_ensemble_and_it_is_not_ready_without_them(tmp_path: Path) -> None:
    adder(tmp_path)
    ensemble(tmp_path, "e", TWICE)
    ensemble(tmp_path, "outer", config(["x"], ["y"], step("e", {"x": "x"}, {"y": "y"})))
    request = InferRequest("outer", "", (tensor("x", ones()),))
    async with engine_of(tmp_path) as engine:
        await engine.load("outer")
        assert [engine.model_ready(name) for name in ("add", "e", "outer")] == [True, True, True]
        assert engine.ready_names() == ["add", "e", "outer"]
        await engine.unload("add")
        assert [engine.model_ready(name) for name in ("add", "e", "outer")] == [False, False, False]
        assert engine.ready_names() == []
        found = await states(engine)
        assert found["e", "1"] == ("UNAVAILABLE", "model 'add' of its steps is not loaded")
        assert found["outer", "1"] == ("UNAVAILABLE", "model 'e' of its steps is not loaded")
        (refused,) = await infer(engine, request)
        assert isinstance(refused, Unavailable)
        assert str(refused) == "ensemble 'outer' is not ready: model 'e' of its steps is not loaded"
        await engine.load("add")
        assert engine.model_ready("outer")
        assert outputs((await infer(engine, request))[0])["y"].tolist() == [[3, 3, 3, 3]]


@pytest.mark.feature("E7")
async def test_unloading_with_dependents_takes_along_what_was_loaded_for_the_ensemble_alone(tmp_path: Path) -> None:
    for name in ("shared", "wanted", "only"):
        adder(tmp_path, name)

    def of(*names: str) -> dict[str, Any]:
        steps = [step(name, {"a": "x", "b": "x"}, {"sum": f"y{name}"}) for name in names]
        return config(["x"], [f"y{name}" for name in names], *steps)

    ensemble(tmp_path, "e", of("shared", "wanted", "only"))
    ensemble(tmp_path, "other", of("shared"))
    async with engine_of(tmp_path) as engine:
        for name in ("e", "other", "wanted"):
            await engine.load(name)
        await engine.unload("e")
        assert [engine.model_ready(name) for name in ("shared", "wanted", "only")] == [True, True, True]
        await engine.load("e")
        await engine.unload("e", dependents=True)
        assert [engine.model_ready(name) for name in ("shared", "wanted", "only")] == [True, True, False]
        assert engine.model_ready("other")


async def test_a_model_that_is_loaded_anew_answers_for_the_ensemble_at_once(tmp_path: Path) -> None:
    adder(tmp_path)
    ensemble(tmp_path, "e", TWICE)
    request = InferRequest("e", "", (tensor("x", ones()),))
    async with engine_of(tmp_path) as engine:
        await engine.load("e")
        onnx_models.add(tmp_path / "add" / "2" / "model.onnx")
        await engine.load("add")
        assert outputs((await infer(engine, request))[0])["y"].tolist() == [[3, 3, 3, 3]]
        assert engine.servable("add", "2").statistics.successes == 2


@pytest.mark.feature("C25")
async def test_polling_mends_an_ensemble_when_its_model_comes(tmp_path: Path) -> None:
    ensemble(tmp_path, "e", TWICE)
    async with engine_of(tmp_path, control=POLL) as engine:
        assert not engine.model_ready("e")
        adder(tmp_path)
        await engine.poll()
        assert engine.model_ready("e")
        assert outputs((await infer(engine, InferRequest("e", "", (tensor("x", ones()),))))[0])["y"][0, 0] == 3


async def test_steps_take_no_place_of_those_that_requests_may_have(tmp_path: Path) -> None:
    adder(tmp_path)
    ensemble(tmp_path, "e", TWICE)
    engine = Engine([tmp_path], LoadSettings(), max_concurrent_requests=2)
    assert await engine.load_all() == []
    sent = [send(engine, InferRequest("e", "", (tensor("x", ones(number)),)))[0] for number in range(1, 6)]
    assert engine.inflight == 5
    assert engine.servable("add").statistics.accepted == 2
    found = await asyncio.wait_for(asyncio.gather(*sent), 10)
    assert [outputs(outcome)["y"][0, 0] for outcome in found] == [3, 6, 9, 12, 15]
    assert engine.inflight == 0
    engine.close()


async def test_on_demand_an_ensemble_and_its_models_are_loaded_by_requests(tmp_path: Path) -> None:
    adder(tmp_path)
    ensemble(tmp_path, "e", TWICE)
    request = InferRequest("e", "", (tensor("x", ones()),))
    async with engine_of(tmp_path, control=Control(on_demand=True)) as engine:
        assert not engine.model_ready("e")
        assert outputs((await infer(engine, request))[0])["y"].tolist() == [[3, 3, 3, 3]]
        await engine._lifecycle.unload("add")  # as one that makes room for another
        assert not engine.model_ready("add")
        assert outputs((await infer(engine, request))[0])["y"].tolist() == [[3, 3, 3, 3]]


@pytest.mark.feature("E4")
async def test_labels_are_those_of_the_model_that_makes_the_output_or_its_own(tmp_path: Path) -> None:
    labelled = 'output { name: "sum" data_type: TYPE_INT32 dims: [4] label_filename: "names" }'
    adder(tmp_path, config=f"max_batch_size: 8 {labelled}")
    (tmp_path / "add" / "names").write_text("a\nb\nc\nd\n")
    steps = [step("add", {"a": "x", "b": "x"}, {"sum": "y"}), step("add", {"a": "y", "b": "x"}, {"sum": "z"})]
    content = config(["x"], ["y", "z"], *steps)
    content["output"][1]["label_filename"] = "own"
    (ensemble(tmp_path, "e", content) / "own").write_text("k\nl\nm\nn\n")
    async with engine_of(tmp_path, control=Control()) as engine:
        x = tensor("x", np.array([[1, 9, 3, 4]], "i4"))
        (outcome,) = await infer(engine, InferRequest("e", "", (x,), classes={"y": 1, "z": 2}))
        found = outputs(outcome)
        assert found["y"].tolist() == [[b"18:1:b"]]
        assert found["z"].tolist() == [[b"27:1:l", b"12:3:n"]]


async def test_an_ensemble_with_a_config_of_the_requests_own_keeps_it_when_its_model_changes(tmp_path: Path) -> None:
    adder(tmp_path)
    ensemble(tmp_path, "e", TWICE)
    own = config(["x"], ["y"], step("add", {"a": "x", "b": "x"}, {"sum": "y"}))
    async with engine_of(tmp_path) as engine:
        await engine.load("e", json.dumps(own))
        await engine.load("add")
        (outcome,) = await infer(engine, InferRequest("e", "", (tensor("x", ones()),)))
        assert outputs(outcome)["y"].tolist() == [[2, 2, 2, 2]]
