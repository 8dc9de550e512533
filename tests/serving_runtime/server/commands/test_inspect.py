"""`inspect` and `profile`, as the control plane calls them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from serving_runtime.engine.inspection import model
from tests.serving_runtime import onnx_models


def told(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "serving_runtime", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_inspect(tmp_path: Path) -> None:
    onnx_models.mlp(tmp_path / "m" / "1" / "model.onnx")
    assert told("inspect", str(tmp_path / "m"), "--json") == (
        0,
        {
            "schema": "fairlead.inspect/v1",
            "platform": "onnxruntime_onnx",
            "max_batch_size": 4,
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 8]}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}],
            "opset": {"ai.onnx": 17},
        },
    )


def test_profile(tmp_path: Path) -> None:
    onnx_models.mlp(onnx_models.configure(tmp_path / "m", "max_batch_size: 6") / "1" / "model.onnx")
    code, profile = told("profile", str(tmp_path / "m"), "--json")
    assert (code, profile["schema"]) == (0, "fairlead.profile/v1")
    assert 0 < profile["load_seconds"] < 10
    assert 0 < profile["memory_bytes"] < 500_000_000
    assert [batch["batch_size"] for batch in profile["batches"]] == [1, 2, 4, 6]
    assert profile["device"]["kind"] == "cpu"
    assert profile["device"]["name"]
    for batch in profile["batches"]:
        assert batch["iterations"] > 0
        assert 0 < batch["latency_p50_us"] <= batch["latency_p99_us"]


def test_profile_finds_a_good_batch_size_where_the_configuration_says_none(tmp_path: Path) -> None:
    onnx_models.mlp(onnx_models.configure(tmp_path / "open", 'backend: "onnxruntime"') / "1" / "model.onnx")
    _, profile = told("profile", str(tmp_path / "open"), "--json")
    sizes = [batch["batch_size"] for batch in profile["batches"]]
    assert sizes == [1 << power for power in range(len(sizes))]
    assert profile["max_batch_size"] == sizes[-1] > 4
    for name, said in (("said", "max_batch_size: 4"), ("dims", 'input { name: "x" dims: [-1, 8] }')):
        onnx_models.mlp(onnx_models.configure(tmp_path / name, said) / "1" / "model.onnx")
        assert "max_batch_size" not in told("profile", str(tmp_path / name), "--json")[1]
    onnx_models.identity(tmp_path / "fixed" / "1" / "model.onnx", shape=(2, 4))
    assert "max_batch_size" not in told("profile", str(tmp_path / "fixed"), "--json")[1]


@pytest.mark.parametrize(
    ("smaller_us", "larger_us", "good"),
    [(1000, 1500, True), (1000, 2000, True), (1000, 2300, False), (30_000, 49_000, True), (30_000, 51_000, False)],
)
def test_a_larger_batch_is_good_while_rows_get_no_dearer_and_nobody_waits_long(
    smaller_us: float, larger_us: float, good: bool
) -> None:
    smaller, larger = ({"batch_size": size, "latency_p50_us": us} for size, us in ((8, smaller_us), (16, larger_us)))
    assert model.pays(smaller, larger) is good


@pytest.mark.parametrize("command", ["inspect", "profile"])
def test_a_model_that_cannot_be_served_is_one_sentence_and_exit_2(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "m"
    for made, sentence in (
        (lambda: None, "no such folder"),
        (folder.mkdir, "model 'm' has no version to serve: no folder named by a number under its folder"),
        ((folder / "1").mkdir, "model 'm' version 1: there is no model.onnx in "),
        (lambda: (folder / "1" / "model.onnx").write_text("text"), "model.onnx is not an ONNX model"),
        (
            lambda: onnx_models.identity(folder / "1" / "model.onnx", opset=99),
            "model 'm' version 1: model.onnx uses opset 99 of ai.onnx; this runtime supports up to 2",
        ),
        (lambda: onnx_models.configure(folder, "input { is_shape_tensor: true }"), "sets 'input.is_shape_tensor'"),
    ):
        made()
        code, answer = told(command, str(folder), "--json")
        assert (code, answer["schema"]) == (2, f"fairlead.{command}/v1")
        assert sentence in answer["error"]
        assert "\n" not in answer["error"]
        assert "of_installation" not in answer


@pytest.mark.parametrize("command", ["inspect", "profile"])
def test_what_this_installation_does_not_allow_is_not_the_models_fault(tmp_path: Path, command: str) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.py").write_text("raise AssertionError('it runs')")
    (tmp_path / "m" / "config.pbtxt").write_text('backend: "python"')
    code, answer = told(command, str(tmp_path / "m"), "--json")
    assert (code, answer["of_installation"], "--allow-python-models" in answer["error"]) == (2, True, True)


def test_an_ensemble_is_told_of_with_the_models_of_its_steps(tmp_path: Path) -> None:
    onnx_models.mlp(onnx_models.configure(tmp_path / "mlp", "max_batch_size: 4") / "1" / "model.onnx")
    onnx_models.configure(tmp_path / "e", ENSEMBLE)
    (tmp_path / "e" / "1").mkdir()
    code, found = told("inspect", str(tmp_path / "e"), "--json")
    assert (code, found["platform"], found["inputs"]) == (
        0,
        "ensemble",
        [{"name": "a", "datatype": "FP32", "shape": [-1, 8]}],
    )
    code, profile = told("profile", str(tmp_path / "e"), "--json")
    assert (code, [batch["batch_size"] for batch in profile["batches"]]) == (0, [1, 2, 4])
    assert profile["memory_bytes"] > 0
    (tmp_path / "mlp" / "1" / "model.onnx").write_text("damaged")
    for command in ("inspect", "profile"):
        code, refused = told(command, str(tmp_path / "e"), "--json")
        assert code == 2
        assert "ensemble 'e' contains model 'mlp', which is not available" in refused["error"]
        assert "of_installation" not in refused


@pytest.mark.parametrize("command", ["inspect", "profile"])
def test_a_library_that_a_step_of_an_ensemble_lacks_is_not_the_models_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    absent = tmp_path / "absent" / "lightgbm.py"
    absent.parent.mkdir()
    absent.write_text("raise ModuleNotFoundError('there is no lightgbm', name='lightgbm')")
    monkeypatch.setenv("PYTHONPATH", str(absent.parent))
    models = tmp_path / "models"
    for name, config in (("mlp", 'backend: "lightgbm"'), ("e", ENSEMBLE)):
        (models / name / "1").mkdir(parents=True)
        (models / name / "config.pbtxt").write_text(config)
    (models / "mlp" / "1" / "model.txt").write_text("tree\n")
    code, refused = told(command, str(models / "e"), "--json")
    assert (code, refused["of_installation"]) == (2, True)
    assert "ensemble 'e' contains model 'mlp', which is not available" in refused["error"]
    assert "needs the package lightgbm, which is not installed" in refused["error"]


ENSEMBLE = """
platform: "ensemble" max_batch_size: 4
input { name: "a" data_type: TYPE_FP32 dims: 8 }
output { name: "b" data_type: TYPE_FP32 dims: 3 }
ensemble_scheduling { step {
  model_name: "mlp" model_version: -1
  input_map { key: "x" value: "a" } output_map { key: "y" value: "b" }
} }
"""
