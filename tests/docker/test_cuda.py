"""The image for NVIDIA GPUs, on a machine that has none: on GPUs it is not verified."""

from pathlib import Path

import numpy as np
import pytest

from tests.docker.containers import SAFE, image, infer, needs, said, serving
from tests.docker.engine import Engine
from tests.serving_runtime import onnx_models

pytestmark = pytest.mark.images

TARGET = "runtime-cuda"
PROVIDER = "/opt/fairlead/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime_providers_cuda.so"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return the folder of a model that answers what it is asked."""
    needs(TARGET)
    folder = tmp_path / "models" / "same"
    (folder / "1").mkdir(parents=True)
    onnx_models.identity(folder / "1" / "model.onnx")
    return folder


def test_a_model_runs_on_the_cpu_where_there_is_no_gpu_and_the_log_says_so(
    docker: Engine, model: Path, tmp_path: Path
) -> None:
    given = np.arange(4, dtype="f4").reshape(1, 4)
    with serving(docker, TARGET, tmp_path) as (container, url):
        assert infer(url, "same", given, ["y"])[0].tolist() == given.tolist()
        assert "model 'same' runs on the CPU, since there is no GPU: NVML finds no NVIDIA driver" in said(
            docker, container
        )


def test_a_model_that_insists_on_a_gpu_is_refused_with_the_reason(docker: Engine, model: Path, tmp_path: Path) -> None:
    (model / "config.pbtxt").write_text("instance_group { kind: KIND_GPU }")
    for each in (tmp_path, *tmp_path.parents[:2]):
        each.chmod(0o755)
    flags = ["--model-repository=/here/models", *(f"--{each}-port=0" for each in ("http", "grpc", "metrics"))]
    done = docker.attempt("run", "--rm", *SAFE, "-v", f"{tmp_path}:/here:ro", image(TARGET), *flags, timeout_s=120)
    output = (done.stdout + done.stderr).decode()
    assert done.returncode == 1, output
    assert "instance_group asks for GPUs, and this process has none: NVML finds no NVIDIA driver" in output


def test_all_libraries_of_its_cuda_provider_are_there_but_the_drivers(docker: Engine) -> None:
    needs(TARGET)
    needed = docker.docker("run", "--rm", *SAFE, "--entrypoint=ldd", image(TARGET), PROVIDER)
    assert "nvidia/cu13/lib/libcublas.so" in needed
    assert {line.split()[0] for line in needed.splitlines() if "not found" in line} <= {"libcuda.so.1"}
