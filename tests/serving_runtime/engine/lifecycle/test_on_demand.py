"""Models loaded by their first request, and idle ones that make room for them."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import ModelError, NoRoom, NotFound, Unavailable
from serving_runtime.common.request import InferRequest, InferResponse, Outcome, Tensor
from serving_runtime.engine.lifecycle import on_demand
from serving_runtime.engine.lifecycle.control_mode import Control, ControlMode
from serving_runtime.engine.memory import process_memory
from serving_runtime.engine.memory.admission import Admission, Unused
from serving_runtime.engine.memory.budget import Budget
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.engine.serving.statistics import statistics_message
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.engines import engine_of, infer, output, states, until

ON_DEMAND = Control(on_demand=True)
SIZE = 1024
FILE_BYTES = SIZE * SIZE * 4


def big(root: Path, *names: str) -> None:
    """Models of 4 MiB, x [N,1024] -> y [N,1024]."""
    for name in names:
        onnx_models.mlp(root / name / "1" / "model.onnx", (SIZE, SIZE))


def budget(models: float, **control: object) -> Control:
    """A budget of so many times the files of a model of 4 MiB, which takes 2.3 times as much while it is opened."""
    return Control(memory_budget_bytes=int(models * FILE_BYTES), **control)  # type: ignore[arg-type]


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let models take what their files do: small ones are lost in what a library takes at its first use."""
    monkeypatch.setattr(process_memory, "resident_bytes", lambda: 0)


async def test_the_first_request_loads_its_model_and_is_answered(tmp_path: Path) -> None:
    onnx_models.mlp(tmp_path / "m" / "1" / "model.onnx", (4, 3))
    async with engine_of(tmp_path, control=ON_DEMAND) as engine:
        assert await states(engine) == {("m", ""): ("UNAVAILABLE", "unloaded")}
        assert engine.ready
        outcomes = await asyncio.gather(*[infer(engine, "m") for _ in range(5)])
        assert [output(outcome).shape for outcome in outcomes] == [(1, 3)] * 5
        assert await states(engine) == {("m", "1"): ("READY", "")}
        assert isinstance(await infer(engine, "nobody"), NotFound)
        assert isinstance(await infer(engine, "m", "2"), NotFound)


async def test_a_request_waits_for_its_model_only_so_long(tmp_path: Path) -> None:
    folder = onnx_models.configure(tmp_path / "slow", "max_batch_size: 8")
    onnx_models.slow(folder / "1" / "model.onnx", 256)
    async with engine_of(tmp_path, control=Control(on_demand=True, on_demand_timeout_s=0.001)) as engine:
        outcome = await infer(engine, "slow", width=256)
        assert isinstance(outcome, Unavailable)
        assert "was not loaded within 0.001 s" in str(outcome)
        await until(lambda: engine.model_ready("slow"), "the load went on")


async def test_a_model_that_does_not_load_is_told_and_not_tried_for_every_request(tmp_path: Path) -> None:
    file = tmp_path / "m" / "1" / "model.onnx"
    file.parent.mkdir(parents=True)
    file.write_text("no model")
    async with engine_of(tmp_path, control=ON_DEMAND) as engine:
        assert "is not an ONNX model" in str(await infer(engine, "m"))
        onnx_models.mlp(file, (4, 3))
        outcome = await infer(engine, "m")
        assert isinstance(outcome, Unavailable)
        assert "is not an ONNX model" in str(outcome)
        assert engine._on_demand is not None
        engine._on_demand._retry_at.clear()  # the pause is over
        assert output(await infer(engine, "m")).shape == (1, 3)


async def test_only_so_many_requests_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx_models.mlp(tmp_path / "m" / "1" / "model.onnx", (4, 3))
    monkeypatch.setattr(on_demand, "MAX_WAITING", 3)
    async with engine_of(tmp_path, control=ON_DEMAND) as engine:
        outcomes = await asyncio.gather(*[infer(engine, "m") for _ in range(5)])
        assert [isinstance(outcome, InferResponse) for outcome in outcomes] == [True] * 3 + [False] * 2
        assert "3 requests with 48 bytes wait for models already" in str(outcomes[-1])
        assert output(await infer(engine, "m")).shape == (1, 3)


async def test_only_so_many_bytes_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx_models.mlp(tmp_path / "m" / "1" / "model.onnx", (4, 3))
    monkeypatch.setattr(on_demand, "MAX_WAITING_BYTES", 40)
    async with engine_of(tmp_path, control=ON_DEMAND) as engine:
        outcomes = await asyncio.gather(*[infer(engine, "m", rows=rows) for rows in (2, 1)])
        assert [type(outcome) for outcome in outcomes] == [InferResponse, Unavailable]


async def test_a_request_whose_client_has_gone_is_forgotten_while_it_waits(tmp_path: Path) -> None:
    onnx_models.mlp(tmp_path / "m" / "1" / "model.onnx", (4, 3))
    answered: list[Outcome] = []
    async with engine_of(tmp_path, control=ON_DEMAND) as engine:
        x = Tensor("x", DATATYPES["FP32"], np.ones((1, 4), "f4"))
        engine.infer(InferRequest("m", "", (x,)), answered.append).cancel()
        assert output(await infer(engine, "m")).shape == (1, 3)
        assert answered == []
        assert engine.servable("m").statistics.accepted == 1


@pytest.mark.usefixtures("exact")
async def test_idle_models_make_room_the_least_recently_used_first(tmp_path: Path) -> None:
    """Three models, room for two: each request loads its model in the place of the one that rested longest."""
    big(tmp_path, "a", "b", "c")

    def ready(engine: Engine) -> list[str]:
        return sorted({servable.name for servable in engine.servables()})

    async with engine_of(tmp_path, control=budget(3.8, on_demand=True)) as engine:
        for name, loaded in (("a", "a"), ("b", "ab"), ("a", "ab"), ("c", "ac"), ("b", "bc"), ("a", "ab")):
            assert output(await infer(engine, name, width=SIZE)).shape == (1, SIZE)
            assert ready(engine) == sorted(loaded)
            await asyncio.sleep(0.002)  # last use is known to the millisecond
        index = await states(engine)
        assert index["c", "1"] == ("UNAVAILABLE", "unloaded")
        assert engine.ready


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("patience_s", [0.0, 20.0])
async def test_a_busy_model_keeps_its_place_until_it_is_idle(tmp_path: Path, patience_s: float) -> None:
    onnx_models.slow(onnx_models.configure(tmp_path / "busy", "max_batch_size: 1") / "1" / "model.onnx", 256, 12_000)
    big(tmp_path, "other")
    control = budget(2.31, on_demand=True, on_demand_timeout_s=20.0)
    async with engine_of(tmp_path, control=control) as engine:
        engine._lifecycle._admission._patience_s = patience_s
        busy = asyncio.create_task(infer(engine, "busy", width=256))
        await until(lambda: engine.inflight == 1, "the model is busy")
        outcome = await infer(engine, "other", width=SIZE)
        assert type(outcome) is (InferResponse if patience_s else NoRoom), outcome
        assert isinstance(await busy, InferResponse)
        assert engine.model_ready("busy") is not bool(patience_s)
        assert isinstance(await infer(engine, "other", width=SIZE), InferResponse), "there is room now"


@pytest.mark.usefixtures("exact")
async def test_a_load_that_does_not_fit_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    big(tmp_path, "a", "b")
    async with engine_of(tmp_path, control=budget(3, mode=ControlMode.EXPLICIT)) as engine:
        await engine.load("a")
        with pytest.raises(NoRoom, match=r"model 'b' needs 9\.2 MiB of memory, but 8\.0 MiB of 12\.0 MiB for models"):
            await engine.load("b")
        assert [servable.name for servable in engine.servables()] == ["a"]
        await engine.unload("a")
        await until(lambda: engine._models["a"].index()[0].reason == "unloaded", "its memory is given back")
        await engine.load("b")
        (stats,) = statistics_message(engine.selected("b", "")).model_stats
        assert stats.memory_usage[0].type == "CPU"
        assert stats.memory_usage[0].byte_size >= FILE_BYTES


@pytest.mark.usefixtures("exact")
async def test_a_reload_needs_room_for_both(tmp_path: Path) -> None:
    big(tmp_path, "a")
    async with engine_of(tmp_path, control=budget(3, mode=ControlMode.EXPLICIT)) as engine:
        await engine.load("a")
        big(tmp_path, "a")
        (tmp_path / "a" / "1" / "more").write_text("changed")
        with pytest.raises(NoRoom):
            await engine.load("a")
        assert output(await infer(engine, "a", width=SIZE)).shape == (1, SIZE)


async def test_a_model_that_turns_out_larger_than_its_files_is_closed_again(tmp_path: Path) -> None:
    """A sample of 32 MiB makes ONNX Runtime keep an arena many times the size of the model."""
    rows = 8192
    sample = f"""max_batch_size: {rows} model_warmup {{ name: "huge" batch_size: {rows} inputs {{ key: "x" value {{
        data_type: TYPE_FP32 dims: {SIZE} zero_data: true }} }} }}"""
    onnx_models.configure(tmp_path / "a", sample)
    big(tmp_path, "a")
    async with engine_of(tmp_path, control=budget(3, mode=ControlMode.EXPLICIT)) as engine:
        with pytest.raises(NoRoom):
            await engine.load("a")
        assert engine._lifecycle._admission._held == {}
        measured = max(engine._models["a"].measured_bytes.values())
        assert measured > 3 * FILE_BYTES
        with pytest.raises(NoRoom, match=rf"needs {measured / 2**20:.1f} MiB"):
            await engine.load("a")


async def test_a_model_that_makes_room_is_not_waited_for_when_it_is_asked_for_meanwhile() -> None:
    """Two must go for a third; while the first goes the second becomes busy, and is left alone."""
    limit = Budget(30)
    idle = {name: Unused(name, used, (name,)) for used, name in enumerate(("first", "second"))}
    unloaded = []

    async def unload(name: str) -> None:
        unloaded.append(name)
        admission.freed(idle.pop(name).opened[0])
        idle.clear()  # the second is being loaded anew, and waits for memory itself

    admission = Admission(limit, lambda: iter(idle.values()), unload, 0.0)
    for name in tuple(idle):
        claims = await admission.claim(name, {1: 15})
        admission.settle(claims[1], name, 15)
    with pytest.raises(NoRoom):
        await admission.claim("third", {1: 30})
    assert unloaded == ["first"]


async def test_an_ensemble_says_why_the_model_of_a_step_does_not_load(tmp_path: Path) -> None:
    onnx_models.identity(tmp_path / "step" / "1" / "model.onnx")
    tensor = '{ name: "%s" data_type: TYPE_FP32 dims: [-1, 4] }'
    maps = 'input_map { key: "x" value: "x" } output_map { key: "y" value: "y" }'
    config = f"""platform: "ensemble" input {tensor % "x"} output {tensor % "y"}
        ensemble_scheduling {{ step {{ model_name: "step" model_version: -1 {maps} }} }}"""
    (onnx_models.configure(tmp_path / "both", config) / "1").mkdir()
    onnx_models.configure(tmp_path / "step", "max_batch_size: 0")
    async with engine_of(tmp_path, control=Control(on_demand=True)) as engine:
        assert output(await infer(engine, "both")).shape == (1, 4)
        await engine._lifecycle.unload("step")
        (tmp_path / "step" / "1" / "model.onnx").write_text("no model")
        outcome = await infer(engine, "both")
        assert isinstance(outcome, ModelError)
        assert str(outcome).startswith("in ensemble 'both', model 'step' version 1: ")
        assert engine.inflight == 0


@pytest.mark.usefixtures("exact")
async def test_an_ensemble_makes_room_with_its_steps_and_not_without_it(tmp_path: Path) -> None:
    big(tmp_path, "step", "other")
    tensor = f'{{ name: "%s" data_type: TYPE_FP32 dims: {SIZE} }}'
    maps = 'input_map { key: "x" value: "x" } output_map { key: "y" value: "y" }'
    steps = f'step {{ model_name: "step" model_version: -1 {maps} }}'
    config = f"max_batch_size: 4 input {tensor % 'x'} output {tensor % 'y'} ensemble_scheduling {{ {steps} }}"
    (onnx_models.configure(tmp_path / "both", config) / "1").mkdir()

    def ready(engine: Engine) -> list[str]:
        return sorted({servable.name for servable in engine.servables()})

    async with engine_of(tmp_path, control=budget(2.5, on_demand=True)) as engine:
        assert output(await infer(engine, "both", width=SIZE)).shape == (1, SIZE)
        assert ready(engine) == ["both", "step"]
        assert output(await infer(engine, "other", width=SIZE)).shape == (1, SIZE)
        assert ready(engine) == ["other"]
        assert output(await infer(engine, "both", width=SIZE)).shape == (1, SIZE)
        assert ready(engine) == ["both", "step"]
