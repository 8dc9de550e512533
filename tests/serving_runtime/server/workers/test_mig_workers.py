"""One worker process per MIG slice, on machines that a stand-in of NVML tells of; the processes are real."""

import os
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, command, server
from tests.serving_runtime.devices.nvidia import STAND_INS

pytestmark = pytest.mark.feature("C5")

ROW = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 8], "data": [0] * 8}]}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(STAND_INS), prepend=os.pathsep)
    for variable in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("FAIRLEAD_TEST_GPUS", "1g.10gb+2g.20gb")
    onnx_models.mlp(onnx_models.configure(tmp_path / "models" / "mlp", "") / "1" / "model.onnx")
    return tmp_path / "models"


def until_shown(process: ServerProcess) -> None:
    deadline = time.monotonic() + 60
    while not (process.metric("nv_gpu_memory_total_bytes", gpu_uuid="MIG-0-1")):
        assert time.monotonic() < deadline


def workers_of(process: ServerProcess) -> list[int]:
    children = Path(f"/proc/{process.process.pid}/task/{process.process.pid}/children").read_text().split()
    return [int(child) for child in children]


def test_each_slice_has_a_worker_which_share_the_port_and_the_metrics_page(repository: Path, tmp_path: Path) -> None:
    with server(repository, "--metrics-interval-ms=10", scratch=tmp_path) as process:
        assert len(workers_of(process)) == 2
        seen = {
            variable.removeprefix("CUDA_VISIBLE_DEVICES=")
            for worker in workers_of(process)
            for variable in Path(f"/proc/{worker}/environ").read_text().split("\0")
            if variable.startswith("CUDA_VISIBLE_DEVICES=")
        }
        assert seen == {"MIG-0-0", "MIG-0-1"}
        for _ in range(40):  # each by a connection of its own, which the kernel gives to either
            assert httpx.post(f"{process.url}/v2/models/mlp/infer", json=ROW, timeout=60).status_code == 200
        assert process.metric("nv_inference_request_success") == 40
        shares = [process.metric("nv_inference_request_success", gpu_uuid=uuid) for uuid in ("MIG-0-0", "MIG-0-1")]
        assert sum(shares) == 40
        until_shown(process)
        assert process.metric("nv_gpu_memory_total_bytes", mig_profile="2g.20gb") == 20 << 30
        assert process.metrics_page().count("# TYPE nv_inference_request_success") == 1
        assert process.metrics_page().count("nv_cpu_utilization{") == 1
        process.terminate()
        assert process.process.wait(60) == 0


def test_a_worker_that_ends_takes_the_others_along(repository: Path, tmp_path: Path) -> None:
    with server(repository, scratch=tmp_path) as process:
        workers = workers_of(process)
        os.kill(workers[0], signal.SIGKILL)
        assert process.process.wait(60) == 1
        assert not Path(f"/proc/{workers[1]}").exists()


def test_one_slice_needs_no_worker(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "MIG-0-1")
    with server(repository, "--metrics-interval-ms=10", scratch=tmp_path) as process:
        assert workers_of(process) == []
        until_shown(process)


def test_a_model_of_sequences_is_refused_by_workers(repository: Path) -> None:
    onnx_models.configure(repository / "mlp", "max_batch_size: 4 sequence_batching { }")
    done = subprocess.run(command(repository), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "the requests of a sequence belong to one process, and this server has several" in done.stderr


@pytest.mark.parametrize(
    ("gpus", "flag", "sentence"),
    [
        ("1g.10gb+1g.10gb", "--workers=2", "--workers=2 does not go with MIG slices, each of which has one"),
        ("1g.10gb+1g.10gb", "--allow-client-shm", "--allow-client-shm does not go with 2 MIG slices"),
        (
            "whole 1g.10gb",
            "--strict-readiness",
            "shown 1 MIG slices and 1 whole GPUs, and CUDA sees one kind or the other",
        ),
    ],
)
def test_what_one_of_several_workers_cannot_answer_for_is_refused(
    repository: Path, monkeypatch: pytest.MonkeyPatch, gpus: str, flag: str, sentence: str
) -> None:
    monkeypatch.setenv("FAIRLEAD_TEST_GPUS", gpus)
    done = subprocess.run(command(repository, flag), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert sentence in done.stderr
