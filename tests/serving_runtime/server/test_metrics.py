"""The metrics port of real servers, as their flags ask for it."""

import os
import subprocess
import time
import urllib.request
from pathlib import Path

import grpc
import httpx
import numpy as np
import pytest

from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, command, server

STAND_INS = Path(__file__).parents[1] / "devices" / "vendor"
OWN = Path(__file__).parents[1] / "own_backends"
PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """mlp, with a label of its own; repeat, decoupled, with buckets of its own."""
    root = tmp_path_factory.mktemp("repository")
    tags = 'max_batch_size: 8 metric_tags { key: "team" value: "vision" }'
    onnx_models.mlp(onnx_models.configure(root / "mlp", tags) / "1" / "model.onnx")
    control = (
        'metric_identifier { family: "nv_inference_first_response_histogram_ms" } '
        "histogram_options { buckets: [1000, 60000] }"
    )
    decoupled = 'backend: "repeat" model_transaction_policy { decoupled: true }'
    config = f"{decoupled} model_metrics {{ metric_control {{ {control} }} }}"
    (onnx_models.configure(root / "repeat", config) / "1").mkdir()
    return root


def infer(process: ServerProcess) -> None:
    content = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 8], "data": [0] * 8}]}
    assert httpx.post(f"{process.url}/v2/models/mlp/infer", json=content).status_code == 200


def stream(process: ServerProcess, count: int) -> None:
    request = proto.ModelInferRequest(model_name="repeat")
    request.inputs.add(name="x", datatype="INT32", shape=[1])
    request.raw_input_contents.append(np.array([count], "<i4").tobytes())
    with grpc.insecure_channel(f"127.0.0.1:{process.grpc}") as channel:
        call = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        assert len(list(call(iter([request.SerializeToString()]), timeout=20))) == count


@pytest.mark.feature("M1", "M2", "M3", "C22")
def test_the_page_shows_what_the_flags_ask_for(repository: Path, tmp_path: Path) -> None:
    flags = ["--metrics-config=histogram_latencies=true", f"--backend-directory={OWN}"]
    with server(repository, *flags, scratch=tmp_path) as process:
        infer(process)
        stream(process, 3)
        stream(process, 0)
        assert process.metric("nv_inference_request_success", model="mlp", version="1", team="vision") == 1
        assert process.metric("nv_inference_compute_infer_duration_us", model="mlp", team="vision") > 0
        family = "nv_inference_first_response_histogram_ms"
        assert process.metric(f"{family}_bucket", model="repeat", le="60000") == 1
        assert process.metric(f"{family}_bucket", model="repeat", le="+Inf") == 1
        assert process.metric(f"{family}_count", model="mlp") == 0
        assert "summary" not in process.metrics_page()
        assert process.metric("nv_cpu_memory_total_bytes") > 0


@pytest.mark.feature("M2", "M4", "M6")
def test_what_the_flags_turn_off_is_not_shown(repository: Path, tmp_path: Path) -> None:
    flags = [
        "--metrics-config=counter_latencies=false",
        "--metrics-config=summary_latencies=true",
        "--metrics-config=summary_quantiles=0.25:0.1,1:0.1",
        "--allow-cpu-metrics=false",
        f"--backend-directory={OWN}",
    ]
    with server(repository, *flags, scratch=tmp_path) as process:
        infer(process)
        page = process.metrics_page()
        assert "nv_inference_queue_duration_us" not in page
        assert "nv_cpu" not in page
        assert process.metric("nv_inference_request_summary_us_count", model="mlp") == 1
        assert process.metric("nv_inference_request_summary_us", model="mlp", quantile="1") > 0
        assert process.metric("nv_inference_request_summary_us", model="mlp", quantile="0.25") > 0


@pytest.mark.feature("M6")
def test_the_machine_is_looked_at_by_the_interval(repository: Path, tmp_path: Path) -> None:
    own = f"--backend-directory={OWN}"
    with server(repository, "--metrics-interval-ms=20", own, scratch=tmp_path) as process:
        assert any(process.metric("nv_cpu_utilization") > 0 for _ in range(1000))
    with server(repository, "--metrics-interval-ms=3600000", own, scratch=tmp_path) as process:
        assert process.metric("nv_cpu_utilization") == 0  # it takes two looks to tell


def test_scrapers_that_ask_for_protobuf_get_native_histograms(repository: Path, tmp_path: Path) -> None:
    with server(repository, f"--backend-directory={OWN}", scratch=tmp_path) as process:
        infer(process)
        asked = urllib.request.Request(f"http://127.0.0.1:{process.metrics}/metrics", headers={"Accept": PROTOBUF})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("application/vnd.google.protobuf; proto=io.prometheus")
            page = answer.read()
        assert b"fairlead_inference_request_duration_us" in page
        assert b"# TYPE" not in page


@pytest.mark.feature("M5")
def test_gpus_and_slices_are_shown_where_there_are_any(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server(repository, f"--backend-directory={OWN}", scratch=tmp_path) as process:
        assert "nv_gpu" not in process.metrics_page()
    monkeypatch.setenv("PYTHONPATH", str(STAND_INS), prepend=os.pathsep)
    monkeypatch.setenv("FAIRLEAD_TEST_GPUS", "whole 1g.10gb+2g.20gb")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1-1")
    with server(repository, f"--backend-directory={OWN}", "--metrics-interval-ms=10", scratch=tmp_path) as process:
        deadline = time.monotonic() + 60
        while not process.metric("nv_gpu_memory_total_bytes"):
            assert time.monotonic() < deadline
        slice_labels = {"gpu_uuid": "MIG-1-1", "mig_profile": "2g.20gb", "parent_uuid": "GPU-1"}
        assert process.metric("nv_gpu_memory_total_bytes") == 20 << 30
        assert process.metric("nv_gpu_memory_used_bytes", **slice_labels) == 1 << 30
        assert process.metric("nv_gpu_power_usage", gpu_uuid="GPU-1") == 250.5
        assert "nv_gpu_utilization" not in process.metrics_page(), "NVML tells none of slices"
    with server(repository, f"--backend-directory={OWN}", "--allow-gpu-metrics=false", scratch=tmp_path) as process:
        assert "nv_gpu" not in process.metrics_page()


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        pytest.param("--metrics-config=rate=1", "there is no 'rate'; there are counter_latencies", id="unknown"),
        pytest.param("--metrics-config=summary_quantiles=0.5", "'0.5' is not QUANTILE:ERROR", id="no error"),
        pytest.param("--metrics-config=summary_quantiles=2:0.1", "must be from 0 to 1", id="no quantile"),
        pytest.param("--metrics-interval-ms=0", "'0' is not a number >= 1", id="no interval"),
    ],
)
def test_what_metrics_flags_cannot_mean_is_refused(repository: Path, flag: str, sentence: str) -> None:
    done = subprocess.run(command(repository, flag), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert sentence in done.stderr
