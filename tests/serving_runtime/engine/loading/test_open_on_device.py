"""What the log says of a model that runs on the CPU for want of a GPU."""

from pathlib import Path

import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.backends import registry
from serving_runtime.engine.catalog.repository import ModelFolder
from serving_runtime.engine.loading import open_on_device
from serving_runtime.engine.loading.settings import LoadSettings
from tests.serving_runtime import onnx_models
from tests.serving_runtime.devices import nvidia

pytestmark = pytest.mark.feature("C5")


def warnings(tmp_path: Path, caplog: pytest.LogCaptureFixture, groups: str, *, capable: bool) -> list[str]:
    (tmp_path / "m" / "1").mkdir(parents=True)
    onnx_models.identity(tmp_path / "m" / "1" / "model.onnx")
    message = f'name: "m" backend: "onnxruntime" default_model_filename: "model.onnx" {groups}'
    config = text_format.Parse(message, proto.ModelConfig())
    backend = registry.find("onnxruntime", None, {})
    backend.runs_on_gpus = capable  # as the wheel for CUDA has it
    with nvidia.machine(None):
        open_on_device.settle(config, backend)
        folder = ModelFolder("m", tmp_path / "m", (1,))
        open_on_device.open_model(config, backend, folder, 1, LoadSettings()).close()
    return [record.message for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize("groups", ["", "instance_group { count: 2 }"], ids=["nothing is said", "KIND_AUTO"])
def test_a_model_that_could_have_used_a_gpu_says_why_it_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, groups: str
) -> None:
    (said,) = warnings(tmp_path, caplog, groups, capable=True)
    assert said.startswith("model 'm' runs on the CPU, since there is no GPU: NVML finds no NVIDIA driver here")


@pytest.mark.parametrize(
    ("groups", "capable"),
    [("instance_group { kind: KIND_CPU }", True), ("", False)],
    ids=["it is to run on the CPU", "the library cannot use GPUs"],
)
def test_one_that_belongs_on_the_cpu_says_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, groups: str, capable: bool
) -> None:
    assert warnings(tmp_path, caplog, groups, capable=capable) == []
