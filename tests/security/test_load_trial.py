"""A file that ends or holds the process that loads it does so in a child: the server serves its other models."""

import os
import select
import shutil
import signal
import socket
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from serving_runtime import proto
from serving_runtime.backends.onnx.backend import OnnxRuntimeBackend
from serving_runtime.common.errors import ModelError
from serving_runtime.config.model import BackendOptions
from serving_runtime.engine.loading import load_trial
from serving_runtime.engine.loading.load_trial import Trial
from serving_runtime.engine.loading.load_trial_client import ForkServer
from serving_runtime.shared import landlock
from tests.security._support import harmful
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.conformance import FIXTURES
from tests.serving_runtime._support.processes import server

skops_io = pytest.importorskip("skops.io", reason="skops is not installed: pip install 'fairlead[sklearn]'")
from sklearn.dummy import DummyClassifier  # noqa: E402

TRUSTED = ",".join(f"{harmful.__name__}.{name}" for name in ("Curious", "Ending", "Endless", "Greedy"))
SETTINGS = {"trusted-types": TRUSTED}


def written(estimator: object, folder: Path) -> Path:
    (folder / "1").mkdir(parents=True)
    skops_io.dump(estimator, folder / "1" / "model.skops")
    return folder / "1" / "model.skops"


def config() -> object:
    return proto.ModelConfig(name="m", backend="sklearn")


@pytest.mark.parametrize(
    ("estimator", "time_s", "sentence"),
    [
        (harmful.Ending(), None, "model.skops ended the process that loaded it on trial (SIGSEGV)"),
        (harmful.Endless(), 8.0, "model.skops was not loaded in 8 s on trial and is refused"),
        (harmful.Greedy(), None, "it cannot answer two rows of 2 features: MemoryError"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_it_would_have_done_to_the_server_is_an_error(
    tmp_path: Path, estimator: object, time_s: float | None, sentence: str
) -> None:
    file = written(estimator, tmp_path / "m")
    assert sentence in (load_trial.run(Trial(file, config(), SETTINGS, time_s)) or "")


def test_a_file_that_never_loads_holds_up_no_other_trial(tmp_path: Path) -> None:
    endless = Trial(written(harmful.Endless(), tmp_path / "m"), config(), SETTINGS, 8.0)
    sound = graph(onnx_models.mlp(tmp_path / "model.onnx"))
    with ThreadPoolExecutor(1) as other:
        first = other.submit(load_trial.run, endless)
        assert load_trial.run(sound) is None
        assert not first.done()
        assert "was not loaded in 8 s" in (first.result() or "")


def fork_servers() -> set[int]:
    """Return the processes of fork servers that this process has started."""
    found = set()
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            if b"load_trial_server" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(int(pid))
    return found


def test_a_fork_server_is_started_again_and_ends_with_its_server(tmp_path: Path) -> None:
    before, server, trial = fork_servers(), ForkServer(), graph(onnx_models.mlp(tmp_path / "model.onnx"))
    question = load_trial.question_of(trial)
    assert server.run(question)[0] == 0
    [first] = fork_servers() - before
    os.kill(first, signal.SIGKILL)
    assert server.run(question)[0] == 0
    [second] = fork_servers() - before - {first}
    ended = os.pidfd_open(second)
    assert server._link is not None
    server._link.close()  # as when this process ends
    assert select.select([ended], [], [], 20)[0]
    os.close(ended)


@pytest.mark.skipif(landlock.version() < landlock.SIGNALS, reason="Landlock refuses signals since Linux 6.12")
def test_what_takes_over_its_process_finds_nothing_there(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        curious = harmful.Curious(str(secret), server.getsockname()[1], str(tmp_path))
        found = load_trial.run(Trial(written(curious, tmp_path / "m"), config(), SETTINGS))
    assert "it reached [] in 1 thread" in (found or "")


def test_a_file_that_was_good_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(DummyClassifier().fit([[0, 0], [1, 1]], [0, 1]), tmp_path / "m")
    trial, cache = Trial(file, config(), {}), tmp_path / "cache"
    assert load_trial.try_load(trial, cache) is None
    (mark,) = (cache / ".tried").iterdir()
    monkeypatch.setattr(load_trial, "_good", set())  # as after a restart
    monkeypatch.setattr(load_trial, "FORK_SERVER", ForkServer())
    monkeypatch.setattr("sys.executable", "/nowhere")
    assert load_trial.try_load(trial, cache) is None
    mark.unlink()
    assert "no process can be started" in (load_trial.try_load(trial, cache) or "")


def test_a_server_outlives_a_model_that_ends_its_process(tmp_path: Path) -> None:
    models = tmp_path / "models"
    onnx_models.mlp(models / "sound" / "1" / "model.onnx")
    written(harmful.Ending(), models / "ending")
    flags = ("--exit-on-error=false", "--strict-readiness=false", f"--backend-config=sklearn,trusted-types={TRUSTED}")
    with server(models, *flags, scratch=tmp_path) as process:
        with urllib.request.urlopen(f"{process.url}/v2/models/sound/ready", timeout=10) as answer:
            assert answer.status == 200
        index = urllib.request.Request(f"{process.url}/v2/repository/index", b"{}", method="POST")
        with urllib.request.urlopen(index, timeout=10) as answer:
            assert b"ended the process that loaded it on trial (SIGSEGV)" in answer.read()
        process.terminate()
        assert process.process.wait(30) == 0


def growing(file: Path, side: int) -> Path:
    """Write a graph that makes a square of numbers as it runs."""
    node, rows = helper.make_node, (TensorProto.FLOAT, ("N", 4))
    nodes = [
        node("ReduceSum", ["x"], ["zero"], keepdims=0),
        node("Cast", ["zero"], ["whole"], to=TensorProto.INT64),
        node("Add", ["whole", "sides"], ["shape"]),
        node("ConstantOfShape", ["shape"], ["large"]),
        node("ReduceSum", ["large"], ["sum"], keepdims=0),
        node("Add", ["x", "sum"], ["y"]),
    ]
    sides = numpy_helper.from_array(np.array([side, side]), "sides")
    return onnx_models.save(file, nodes, [("x", *rows)], [("y", *rows)], initializers=[sides])


def graph(file: Path, backend: str = "onnxruntime", **others: object) -> Trial:
    message = proto.ModelConfig(name="m", backend=backend)
    return Trial(file, message, {}, **{"memory_bytes": 256 << 20, **others})  # type: ignore[arg-type]


def test_a_server_outlives_a_graph_that_is_loaded_later(tmp_path: Path) -> None:
    """Models of its start are not tried: where one fails the server ends anyway."""
    models, cache = tmp_path / "models", tmp_path / "cache"
    sound = onnx_models.mlp(models / "sound" / "1" / "model.onnx")
    onnx_models.ending(models / "ending" / "1" / "model.onnx")
    (models / "beside" / "1").mkdir(parents=True)
    onnx.save(
        onnx.load(sound),
        models / "beside" / "1" / "model.onnx",
        save_as_external_data=True,
        location="weights.data",
        size_threshold=0,
    )
    flags = ("--model-control-mode=explicit", "--load-model=sound", f"--model-cache-directory={cache}")
    with server(models, *flags, scratch=tmp_path) as process:
        assert not (cache / ".tried").exists()
        with httpx.Client(base_url=process.url, timeout=30) as client:
            refused = client.post("/v2/repository/models/ending/load")
            assert "model.onnx ended the process that loaded it on trial (SIGFPE)" in refused.json()["error"]
            assert client.get("/v2/models/sound/ready").status_code == 200
            assert client.post("/v2/repository/models/beside/load").status_code == 200
        (_,) = (cache / ".tried").iterdir()
        process.terminate()
        assert process.process.wait(30) == 0


@pytest.mark.parametrize(
    ("side", "sentence"),
    [
        (10_000, "of memory as it was loaded and first run"),
        (1_000_000, "lacks memory as it is loaded and first run on trial"),
    ],
    ids=["measured", "refused by the kernel"],
)
def test_a_graph_that_takes_too_much_memory_takes_it_in_a_child(tmp_path: Path, side: int, sentence: str) -> None:
    error = load_trial.run(graph(growing(tmp_path / "model.onnx", side)))
    assert sentence in (error or "")
    assert "all models may take 256.0 MiB" in (error or "")


def test_a_graph_that_is_refused_is_refused_in_the_same_words(tmp_path: Path) -> None:
    file = onnx_models.mlp(tmp_path / "model.onnx")
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(ModelError) as expected:
        OnnxRuntimeBackend({}).load(file, BackendOptions({}))
    assert load_trial.run(graph(file)) == str(expected.value)
    assert load_trial.run(graph(file, on_gpu=True)) is None, "the CPU may refuse what a GPU runs"


def test_graphs_of_openvino_are_tried(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino", reason="openvino is not installed: pip install 'fairlead[openvino]'")
    written = onnx_models.mlp(tmp_path / "written.onnx")
    file = tmp_path / "1" / "model.xml"
    openvino.save_model(openvino.convert_model(written), file)
    assert load_trial.run(graph(file, "openvino")) is None
    weights = file.with_suffix(".bin")
    weights.write_bytes(weights.read_bytes()[:8])
    assert "model.xml" in (load_trial.run(graph(file, "openvino")) or "")


def test_a_saved_model_is_tried_with_its_folders(tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="openvino is not installed: pip install 'fairlead[openvino]'")
    folder = tmp_path / "1" / "model.savedmodel"
    shutil.copytree(FIXTURES / "layers.savedmodel", folder)
    assert load_trial.run(graph(folder, "openvino")) is None
    for file in folder.glob("variables/*"):
        file.unlink()
    assert load_trial.run(graph(folder, "openvino")) is not None
