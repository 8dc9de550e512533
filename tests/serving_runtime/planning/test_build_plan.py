"""The command `build-plan`, with TensorRT's builder a stand-in of its documented API."""

import json
from pathlib import Path

import pytest

from serving_runtime.__main__ import main
from serving_runtime.backends import registry
from serving_runtime.config.model import BackendOptions
from tests.serving_runtime import onnx_models
from tests.serving_runtime.devices import nvidia

PROFILE = "--profile=x:1x8:4x8:16x8"


def built(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:
    code = main(["build-plan", *arguments])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_plan_is_built_and_says_on_what(tmp_path: Path, capsys: pytest.CaptureFixture[str], precision: str) -> None:
    model = onnx_models.mlp(tmp_path / "model.onnx", (8, 16, 1))
    plan, cache = tmp_path / "out" / "1" / "model.plan", tmp_path / "timings"
    with nvidia.machine("1g.10gb"):
        code, told = built(
            capsys, str(model), f"--output={plan}", PROFILE, f"--precision={precision}", f"--timing-cache={cache}"
        )
        assert code == 0, told
        assert (told["mig_profile"], told["compute_capability"], told["bytes"]) == (
            "1g.10gb",
            "9.0",
            plan.stat().st_size,
        )
        assert cache.read_bytes() == b"timings"
        served = registry.find("tensorrt", None, {}).load(plan, BackendOptions({}, gpu=0))
        assert (served.signature.inputs[0].shape, served.max_batch_size) == ((-1, 8), 16)
        served.close()
    assert [file.name for file in plan.parent.iterdir()] == ["model.plan"]


def test_without_a_gpu_nothing_is_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnx_models.mlp(tmp_path / "model.onnx", (8, 1))
    with nvidia.machine(None):
        code, told = built(capsys, str(model), f"--output={tmp_path / 'model.plan'}")
    assert code == 2
    assert told["error"].startswith(
        "a plan is built on the GPU that is to run it, and this process has none: NVML finds"
    )
    assert not (tmp_path / "model.plan").exists()


def test_what_tensorrt_says_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnx_models.mlp(tmp_path / "model.onnx", (8, 1))
    with nvidia.machine("whole"):
        code, told = built(capsys, str(model), f"--output={tmp_path / 'model.plan'}")
    assert code == 2
    assert "TensorRT 11.4.0.106 cannot build the plan: Error Code 4: Network has dynamic" in told["error"]


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
        main(["build-plan", "model.onnx", "--output=p", f"--profile={profile}"])
    assert sentence in capsys.readouterr().err
