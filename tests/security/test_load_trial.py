"""A file that ends or holds the process that loads it does so in a child: the server serves its other models."""

import socket
import urllib.request
from pathlib import Path

import pytest

from serving_runtime import proto
from serving_runtime.engine import load_trial
from serving_runtime.engine.load_settings import LoadSettings
from serving_runtime.engine.load_trial import Trial
from serving_runtime.shared import landlock
from tests.security._support import harmful
from tests.serving_runtime import onnx_models
from tests.serving_runtime.processes import server

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
    settings = LoadSettings(cache_directory=tmp_path / "cache")
    assert load_trial.try_load(file, config(), settings) is None
    (mark,) = (tmp_path / "cache" / ".tried").iterdir()
    monkeypatch.setattr(load_trial, "_good", set())  # as after a restart
    monkeypatch.setattr("sys.executable", "/nowhere")
    assert load_trial.try_load(file, config(), settings) is None
    mark.unlink()
    assert "no process can be started" in (load_trial.try_load(file, config(), settings) or "")


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
