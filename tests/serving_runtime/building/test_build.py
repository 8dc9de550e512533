"""The command `build`; of plans with TensorRT's builder a stand-in of its documented API."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from serving_runtime.__main__ import main
from serving_runtime.artifacts.unpack import digest_of_folder
from serving_runtime.backends import registry
from serving_runtime.config.model import BackendOptions
from serving_runtime.engine.inspection.model import inspect
from serving_runtime.engine.loading.settings import LoadSettings
from tests.serving_runtime import onnx_models
from tests.serving_runtime.devices import nvidia

PROFILE = "--profile=x:1x8:4x8:16x8"
ROWS = np.random.default_rng(1).normal(size=(64, 8)).astype("f4")
CONFIG = """
name: "another"
max_batch_size: 4
default_model_filename: "digits.onnx"
instance_group { count: 2 kind: KIND_CPU }
input { name: "x" data_type: TYPE_FP32 dims: 8 }
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx_models.mlp(tmp_path / "digits" / "1" / "model.onnx", (8, 16, 1))
    return tmp_path / "digits"


def built(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:
    code = main(["build", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def in_a_process_of_its_own(*arguments: str) -> tuple[int, dict, list[dict]]:
    """ONNX Runtime's tools for FP16 and for INT8 do not go together in one process."""
    command = [sys.executable, "-m", "serving_runtime", "build", *arguments, "--json"]
    ended = subprocess.run(command, check=False, timeout=120, capture_output=True, text=True)
    said = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("{")]
    return ended.returncode, json.loads(ended.stdout), said


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_a_model_comes_out_as_a_folder_that_is_served(model: Path, tmp_path: Path, precision: str) -> None:
    (model / "labels.txt").write_text("one\n")
    (model / "config.pbtxt").write_text(CONFIG)
    (model / "1" / "model.onnx").rename(model / "1" / "digits.onnx")
    np.savez(model / "calibration.npz", x=ROWS)
    target = tmp_path / "built" / "another"
    code, told, said = in_a_process_of_its_own(str(model), f"--output={target}", f"--precision={precision}")
    assert code == 0, told
    assert told["digest"] == digest_of_folder(target)
    assert {**told["made"], "onnxruntime": ""} == {"target": "onnx", "precision": precision, "onnxruntime": ""}
    files = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
    assert files == ["1/model.onnx", "config.pbtxt", "labels.txt"]
    found = inspect(target, LoadSettings())
    assert (found["platform"], found["inputs"][0]["datatype"]) == ("onnxruntime_onnx", "FP32")
    stages = [line["stage"] for line in said]
    assert stages[0] == f"writing {precision}"
    assert ("calibrating: 64 of 64 rows" in stages) == (precision == "int8")


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_plan_is_built_and_says_on_what(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], precision: str
) -> None:
    (model / "config.pbtxt").write_text(CONFIG.replace("digits.onnx", "model.onnx"))
    target, caches = tmp_path / "out", tmp_path / "timings"
    asked = ("--target=tensorrt", f"--output={target}", PROFILE, f"--precision={precision}")
    with nvidia.machine("1g.10gb"):
        code, told = built(capsys, str(model), *asked, f"--timing-caches={caches}")
        assert code == 0, told
        made = told["made"]
        assert (made["mig_profile"], made["compute_capability"]) == ("1g.10gb", "9.0")
        (cache,) = caches.iterdir()
        assert cache.name.endswith(f"-1g.10gb-{made['tensorrt']}.timings")
        assert cache.read_bytes() == b"timings"
        served = registry.find("tensorrt", None, {}).load(target / "1" / "model.plan", BackendOptions({}, gpu=0))
        assert (served.signature.inputs[0].shape, served.max_batch_size) == ((-1, 8), 16)
        served.close()
    config = (target / "config.pbtxt").read_text()
    assert 'platform: "tensorrt_plan"' in config
    assert "instance_group" not in config
    assert "max_batch_size: 4" in config


def test_without_a_gpu_no_plan_is_built(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with nvidia.machine(None):
        code, told = built(capsys, str(model), "--target=tensorrt", f"--output={tmp_path / 'out'}")
    assert code == 2
    assert told["error"].startswith(
        "a plan is built on the GPU that is to run it, and this process has none: NVML finds"
    )
    assert not (tmp_path / "out").exists()


def test_what_tensorrt_says_is_told(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with nvidia.machine("whole"):
        code, told = built(capsys, str(model), "--target=tensorrt", f"--output={tmp_path / 'out'}")
    assert code == 2
    assert "TensorRT 11.4.0.106 cannot build the plan: Error Code 4: Network has dynamic" in told["error"]


def test_what_cannot_be_built_is_told(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = f"--output={tmp_path / 'out'}"
    assert "is FP32 as it is" in built(capsys, str(model), output, "--precision=fp32")[1]["error"]
    assert "int8 needs typical rows" in built(capsys, str(model), output, "--precision=int8")[1]["error"]
    taken = built(capsys, str(model), f"--output={model}", "--precision=fp16")[1]["error"]
    assert taken.endswith("is there already; give a new folder")
    (model / "1" / "model.onnx").rename(model / "1" / "model.json")
    none = built(capsys, str(model), output)[1]["error"]
    assert none == "model 'digits' has no ONNX file model.onnx in its newest version; only ONNX is built from"
    assert "there is no model folder" in built(capsys, str(tmp_path / "nothing"), output)[1]["error"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        ("x:1x8:4x8", "is not INPUT:MIN:USUAL:MAX"),
        ("x:1x8:4x8:many", "is not INPUT:MIN:USUAL:MAX"),
        ("x:4x8:1x8:16x8", "none smaller than the former"),
        ("x:1:4x8:16x8", "the shapes must be of one rank"),
    ],
)
def test_a_profile_that_makes_no_sense_is_refused(
    profile: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["build", "model", "--output=p", f"--profile={profile}"])
    assert sentence in capsys.readouterr().err
