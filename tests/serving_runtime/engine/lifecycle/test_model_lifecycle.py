"""Models come, change and go while an engine serves."""

import asyncio
import os
from pathlib import Path

import pytest

from serving_runtime.common.errors import FailureReason, Forbidden, ModelError, NotFound, ServingError, Unavailable
from serving_runtime.common.request import InferResponse
from serving_runtime.engine.lifecycle.control_mode import Control, ControlMode
from serving_runtime.engine.serving.statistics import statistics_message
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.engines import EXPLICIT, POLL, engine_of, infer, output, states, until

READY = ("READY", "")
UNLOADED = ("UNAVAILABLE", "unloaded")
ALL_VERSIONS = "version_policy { all { } }"


def model(root: Path, name: str, *versions: int, width: int = 3, config: str = "") -> Path:
    """A model x [N,4] -> y [N,width] in the given versions."""
    onnx_models.configure(root / name, config)
    for version in versions:
        onnx_models.mlp(root / name / str(version) / "model.onnx", (4, width))
    return root / name


@pytest.mark.feature("C25")
async def test_explicit_mode_loads_only_what_is_asked_for(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        model(tmp_path, name, 1)
    async with engine_of(tmp_path, control=Control(ControlMode.EXPLICIT, ("b",))) as engine:
        assert await states(engine) == {("a", ""): UNLOADED, ("b", "1"): READY, ("c", ""): UNLOADED}
        assert engine.ready
        assert isinstance(await infer(engine, "a"), Unavailable)
        await engine.load("a")
        assert output(await infer(engine, "a")).shape == (1, 3)
    async with engine_of(tmp_path, control=Control(ControlMode.EXPLICIT, ("*",))) as engine:
        assert [entry.name for entry in await engine.index(ready_only=True)] == ["a", "b", "c"]


@pytest.mark.feature("C25", "E6", "E7")
@pytest.mark.parametrize("mode", [ControlMode.NONE, ControlMode.POLL])
async def test_load_and_unload_need_explicit_mode(tmp_path: Path, mode: ControlMode) -> None:
    model(tmp_path, "m", 1)
    async with engine_of(tmp_path, control=Control(mode)) as engine:
        for change in (engine.load("m"), engine.unload("m")):
            with pytest.raises(Forbidden, match=f"not allowed with --model-control-mode={mode.value}"):
                await change
        assert output(await infer(engine, "m")).shape == (1, 3)


@pytest.mark.feature("E5", "E7")
async def test_an_unloaded_model_answers_what_it_accepted_and_is_unloading_until_then(tmp_path: Path) -> None:
    onnx_models.slow(onnx_models.configure(tmp_path / "slow", "max_batch_size: 8") / "1" / "model.onnx", 256)
    async with engine_of(tmp_path) as engine:
        await engine.load("slow")
        accepted = [asyncio.create_task(infer(engine, "slow", width=256)) for _ in range(3)]
        await asyncio.sleep(0)
        await engine.unload("slow")
        assert (await states(engine))["slow", "1"] == ("UNLOADING", "")
        assert isinstance(await infer(engine, "slow", width=256), Unavailable)
        assert {output(outcome).shape for outcome in await asyncio.gather(*accepted)} == {(1, 256)}
        await until(lambda: engine._models["slow"].index()[0].state == "UNAVAILABLE", "it is unloaded")
        assert (await states(engine))["slow", "1"] == UNLOADED
        assert engine.ready, "a model that was unloaded is none that failed"
        await engine.unload("slow")


async def test_what_models_finish_after_an_unload_or_a_reload_is_in_flight(tmp_path: Path) -> None:
    """A request to an ensemble, with its step under way, as the schedulers count them."""
    model(tmp_path, "step", 1)
    step = 'model_name: "step" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "y" }'
    tensors = 'input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 3 }'
    config = f"max_batch_size: 4 {tensors} ensemble_scheduling {{ step {{ {step} }} }}"
    (onnx_models.configure(tmp_path / "both", config) / "1").mkdir()
    async with engine_of(tmp_path) as engine:
        await engine.load("both")
        both, part = engine.servable("both"), engine.servable("step")
        both.statistics.accepted += 1
        part.statistics.accepted += 1
        both.scheduler.steps_under_way += 1  # type: ignore[attr-defined]
        assert engine.inflight == 1
        onnx_models.configure(tmp_path / "both", f'{config} metric_tags {{ key: "a" value: "b" }}')
        await engine.load("both")
        assert engine.servable("both") is not both
        assert engine.inflight == 1
        await engine.unload("both")
        await engine.unload("step")
        assert engine.inflight == 1
        both.scheduler.steps_under_way -= 1  # type: ignore[attr-defined]
        for servable in (both, part):
            servable.statistics.record_failure(FailureReason.OTHER, 0)
        assert engine.inflight == 0


@pytest.mark.feature("E6")
async def test_a_load_that_fails_is_told_in_the_index_and_does_not_stay_when_it_succeeds_later(tmp_path: Path) -> None:
    folder = model(tmp_path, "m", 1, 3, config=ALL_VERSIONS)
    (folder / "3" / "model.onnx").write_text("no model")
    async with engine_of(tmp_path) as engine:
        with pytest.raises(ModelError, match=r"model 'm' version 3: model\.onnx is not an ONNX model") as error:
            await engine.load("m")
        reason = str(error.value)
        assert await states(engine) == {
            ("m", "1"): ("UNAVAILABLE", f"not loaded: {reason}"),
            ("m", "3"): ("UNAVAILABLE", reason),
        }
        assert not engine.ready
        onnx_models.mlp(folder / "3" / "model.onnx", (4, 2))
        await engine.load("m")
        assert await states(engine) == {("m", "1"): READY, ("m", "3"): READY}
        assert engine.ready


async def test_names_that_nobody_knows_are_refused_and_not_remembered(tmp_path: Path) -> None:
    async with engine_of(tmp_path) as engine:
        for change in (engine.load("nobody"), engine.load("../x"), engine.unload("nobody")):
            with pytest.raises(NotFound, match=r"failed to (un)?load '.*', there is no such model"):
                await change
        assert await engine.index(ready_only=False) == []


@pytest.mark.feature("E6")
async def test_a_reload_that_fails_keeps_the_old_model(tmp_path: Path) -> None:
    folder = model(tmp_path, "m", 1)
    async with engine_of(tmp_path) as engine:
        await engine.load("m")
        (folder / "1" / "model.onnx").write_text("no model")
        with pytest.raises(ModelError):
            await engine.load("m")
        assert await states(engine) == {("m", "1"): READY}
        assert engine.ready
        assert output(await infer(engine, "m")).shape == (1, 3)


@pytest.mark.feature("E6")
async def test_requests_before_during_and_after_reloads_are_all_answered(tmp_path: Path) -> None:
    """The slow model has requests waiting at every switch; each is answered by the model that accepted it."""
    config = "max_batch_size: 8 dynamic_batching { }"
    onnx_models.slow(onnx_models.configure(tmp_path / "m", config) / "1" / "model.onnx", 64, rounds=300)
    async with engine_of(tmp_path) as engine:
        await engine.load("m")
        first, done = engine.servable("m"), asyncio.Event()

        async def client() -> int:
            answered = 0
            while not done.is_set():
                assert isinstance(await infer(engine, "m", width=64), InferResponse)
                answered += 1
            return answered

        clients = [asyncio.create_task(client()) for _ in range(6)]
        for reload in range(1, 5):
            onnx_models.slow(tmp_path / "m" / "1" / "model.onnx", 64, rounds=300 + reload)
            await engine.load("m")
        done.set()
        answered = sum(await asyncio.gather(*clients))
        assert engine.servable("m") is not first
        await until(lambda: engine.servable("m").counts is engine.servable("m").statistics, "all old ones have gone")
        (stats,) = statistics_message(engine.selected("m", "")).model_stats
        assert stats.inference_stats.success.count == answered, "counters go on over a reload"


@pytest.mark.feature("E6")
async def test_a_reload_opens_only_what_has_changed(tmp_path: Path) -> None:
    folder = model(tmp_path, "m", 1, 2, config=ALL_VERSIONS)
    async with engine_of(tmp_path) as engine:
        await engine.load("m")
        before = {version: engine.servable("m", version) for version in ("1", "2")}
        await engine.load("m")
        assert {version: engine.servable("m", version) for version in ("1", "2")} == before
        onnx_models.mlp(folder / "2" / "model.onnx", (4, 5))
        onnx_models.mlp(folder / "3" / "model.onnx", (4, 6))
        await engine.load("m")
        assert engine.servable("m", "1") is before["1"]
        assert [output(await infer(engine, "m", version)).shape[1] for version in ("1", "2", "3", "")] == [3, 5, 6, 6]


@pytest.mark.feature("C5")
async def test_a_changed_instance_count_opens_no_file(tmp_path: Path) -> None:
    folder = model(tmp_path, "m", 1)
    async with engine_of(tmp_path) as engine:
        await engine.load("m")
        before = engine.servable("m")
        onnx_models.configure(folder, "instance_group { count: 3 }")
        await engine.load("m")
        assert engine.servable("m").model is not before.model, "a group where there was none is another config"
        before = engine.servable("m")
        onnx_models.configure(folder, "instance_group { count: 2 }")
        await engine.load("m")
        after = engine.servable("m")
        assert (after.config.instance_count, after.message.instance_group[0].count) == (2, 2)
        assert after.model is before.model
        await until(lambda: before not in engine._lifecycle._alive, "the old one has gone")
        assert output(await infer(engine, "m")).shape == (1, 3), "the model is not closed with the old servable"


@pytest.mark.feature("C4")
async def test_another_version_policy_only_chooses_anew(tmp_path: Path) -> None:
    folder = model(tmp_path, "m", 1, 2)
    async with engine_of(tmp_path) as engine:
        await engine.load("m")
        newest = engine.servable("m").model
        onnx_models.configure(folder, "version_policy { specific { versions: [1, 2] } }")
        await engine.load("m")
        assert engine.model_metadata("m")["versions"] == ["1", "2"]
        assert engine.servable("m", "2").model is newest
        onnx_models.configure(folder, "version_policy { specific { versions: 1 } }")
        await engine.load("m")
        assert engine.servable("m").version == "1"
        await until(lambda: engine._models["m"].index()[1].state == "UNAVAILABLE", "version 2 is unloaded")
        assert await states(engine) == {("m", "1"): READY, ("m", "2"): UNLOADED}


@pytest.mark.feature("E6")
async def test_a_load_request_may_bring_its_config_and_its_files(tmp_path: Path) -> None:
    model(tmp_path, "m", 1)
    other = onnx_models.mlp(tmp_path.parent / f"{tmp_path.name}-other.onnx", (4, 7)).read_bytes()
    async with engine_of(tmp_path) as engine:
        await engine.load("m", '{"max_batch_size": 2}')
        assert engine.servable("m").config.max_batch_size == 2
        assert output(await infer(engine, "m")).shape == (1, 3)
        await engine.load("m", '{"max_batch_size": 3}', {"5/model.onnx": other})
        assert engine.servable("m").config.max_batch_size == 3
        assert output(await infer(engine, "m", "5")).shape == (1, 7)
        brought = engine._models["m"].loaded
        assert brought is not None
        assert brought.folder.path.stat().st_mode & 0o077 == 0, "nobody else may read it"
        await engine.load("m")
        assert output(await infer(engine, "m", "1")).shape == (1, 3), "a plain load is the repository's again"
        assert not brought.folder.path.exists()
        await engine.load("new", "{}", {"1/model.onnx": other})
        folder = engine._models["new"].loaded
        await engine.unload("new")
        assert folder is not None
        assert not folder.folder.path.exists()


@pytest.mark.feature("E6")
@pytest.mark.parametrize(
    ("config", "files", "sentence"),
    [
        pytest.param("{", {}, "no ModelConfig in JSON", id="no JSON"),
        pytest.param('{"no_such_field": 1}', {}, "no ModelConfig in JSON", id="no field of ModelConfig"),
        pytest.param('{"name": "' + "x" * 5_000_000 + '"}', {}, "is larger than", id="a huge config"),
        pytest.param(None, {"1/model.onnx": b""}, "need a 'config' parameter", id="files without a config"),
        pytest.param("{}", {"../1/model.onnx": b""}, "is not file:<version>/<file>", id="a way out"),
        pytest.param("{}", {"/1/model.onnx": b""}, "is not file:<version>/<file>", id="an absolute path"),
        pytest.param("{}", {"1/../../model.onnx": b""}, "is not file:<version>/<file>", id="a way out of a version"),
        pytest.param("{}", {"": b""}, "is not file:<version>/<file>", id="no path"),
        pytest.param("{}", {"model.onnx": b""}, "no file is in a version's folder", id="no version"),
        pytest.param("{}", {"1/model.onnx": b"?"}, "is not an ONNX model", id="no model"),
        pytest.param('{"name": "other"}', {"1/model.onnx": b"?"}, "must be its folder's name", id="another name"),
    ],
)
async def test_an_override_that_cannot_be_served_is_refused_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str | None, files: dict[str, bytes], sentence: str
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    model(tmp_path / "models", "m", 1)
    async with engine_of(tmp_path / "models") as engine:
        await engine.load("m")
        with pytest.raises(ServingError, match=sentence):
            await engine.load("m", config, files)
        assert await states(engine) == {("m", "1"): READY}
        assert list(scratch.iterdir()) == []


@pytest.mark.feature("C25")
async def test_polling_follows_the_repository_and_loads_only_what_has_changed(tmp_path: Path) -> None:
    folder = model(tmp_path, "m", 1)
    model(tmp_path, "still", 1)
    async with engine_of(tmp_path, control=POLL) as engine:
        still, before = engine.servable("still"), engine.servable("m")
        await engine.poll()
        assert engine.servable("m") is before
        onnx_models.mlp(folder / "1" / "model.onnx", (4, 5))
        model(tmp_path, "new", 1)
        await engine.poll()
        assert output(await infer(engine, "m")).shape == (1, 5)
        assert output(await infer(engine, "new")).shape == (1, 3)
        assert engine.servable("still") is still
        (tmp_path / "new" / "1" / "model.onnx").unlink()
        (tmp_path / "new" / "1").rmdir()
        (tmp_path / "new" / "config.pbtxt").unlink()
        (tmp_path / "new").rmdir()
        await engine.poll()
        assert isinstance(await infer(engine, "new"), Unavailable)
        assert engine.ready
        await until(lambda: engine._models["new"].index()[0].reason == "unloaded", "the last of it has gone")
        await engine.poll()
        assert isinstance(await infer(engine, "new"), NotFound)
        assert ("new", "1") not in await states(engine)


@pytest.mark.feature("C25")
async def test_polling_keeps_the_old_model_and_tries_again_only_after_a_change(tmp_path: Path) -> None:
    folder = model(tmp_path, "m", 1)
    file = folder / "1" / "model.onnx"
    async with engine_of(tmp_path, control=POLL) as engine:
        file.write_text("no model")
        await engine.poll()
        assert output(await infer(engine, "m")).shape == (1, 3)
        tried = file.stat()
        onnx_models.mlp(file, (4, 5))
        content = file.read_bytes()
        file.write_text("no model")
        os.utime(file, ns=(tried.st_atime_ns, tried.st_mtime_ns))
        await engine.poll()
        assert output(await infer(engine, "m")).shape == (1, 3)
        file.write_bytes(content)
        await engine.poll()
        assert output(await infer(engine, "m")).shape == (1, 5)


@pytest.mark.feature("C26")
async def test_a_model_in_two_repositories_is_unavailable_and_no_failure_of_the_start(tmp_path: Path) -> None:
    for root in ("a", "b"):
        model(tmp_path / root, "m", 1)
        model(tmp_path / root, f"only-{root}", 1)
    async with engine_of(tmp_path / "a", tmp_path / "b", control=Control()) as engine:
        found = await states(engine)
        assert found["m", ""][0] == "UNAVAILABLE"
        assert "is in two repositories" in found["m", ""][1]
        assert found["only-a", "1"] == found["only-b", "1"] == READY
        assert isinstance(await infer(engine, "m"), Unavailable)
        assert [entry.name for entry in await engine.index(ready_only=False, repository="b")] == ["only-b"]
        with pytest.raises(NotFound, match="there is no repository 'c'; there are a, b"):
            await engine.index(ready_only=False, repository="c")


@pytest.mark.feature("C25")
async def test_a_load_is_tried_again_as_often_as_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = model(tmp_path, "m", 1)
    (folder / "1" / "model.onnx").write_text("no model")
    async with engine_of(tmp_path, retry_count=2) as engine:
        with pytest.raises(ModelError):
            await engine.load("m")
    assert [record.message.rpartition("; ")[2] for record in caplog.records if record.levelname == "WARNING"] == [
        "trying again (1 of 2)",
        "trying again (2 of 2)",
    ]


async def test_models_are_loaded_by_at_most_so_many_threads(tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(6)]
    for name in names:
        model(tmp_path, name, 1)
    for threads in (1, 3):
        async with engine_of(tmp_path, control=Control(load_threads=threads)) as engine:
            assert [entry.name for entry in await engine.index(ready_only=True)] == names


async def test_a_stopping_server_loads_no_more(tmp_path: Path) -> None:
    model(tmp_path, "m", 1)
    async with engine_of(tmp_path, control=EXPLICIT) as engine:
        engine.draining = True
        with pytest.raises(Unavailable, match="the server is stopping"):
            await engine.load("m")
