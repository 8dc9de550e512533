"""Triton's own load generator against a real server: it reads metadata, config and statistics before it measures."""

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.servers.clients import PerfAnalyzer, perf_analyzer
from tests.servers.parts import MissingPartError, skip_or_fail
from tests.serving_runtime import onnx_models
from tests.serving_runtime.processes import ServerProcess, server

# Stable is whatever comes: how fast and how evenly a busy machine answers is not what is tested.
_WINDOWS = ("--measurement-mode=count_windows", "--measurement-request-count=50", "--stability-percentage=999")


TOTAL = """max_batch_size: 4 sequence_batching { oldest { max_candidate_sequences: 8 }
    state { input_name: "total_in" output_name: "total_out" data_type: TYPE_FP32 dims: [2] } }"""

PIPELINE = """platform: "ensemble" max_batch_size: 8
    input { name: "x" data_type: TYPE_FP32 dims: [8] } output { name: "y" data_type: TYPE_FP32 dims: [3] }
    ensemble_scheduling { step { model_name: "mlp" model_version: -1
        input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }"""


@pytest.fixture(scope="module")
def analyzer() -> PerfAnalyzer:
    try:
        return perf_analyzer()
    except MissingPartError as missing:
        skip_or_fail(missing)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("repository")
    onnx_models.mlp(onnx_models.configure(root / "mlp", "max_batch_size: 8 dynamic_batching { }") / "1" / "model.onnx")
    onnx_models.running_total(onnx_models.configure(root / "total", TOTAL) / "1" / "model.onnx")
    (root / "pipeline" / "1").mkdir(parents=True)
    onnx_models.configure(root / "pipeline", PIPELINE)
    with server(root, "--allow-client-shm=true", scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


@pytest.mark.parametrize(
    ("protocol", "flags"),
    [
        pytest.param("http", (), id="http"),
        pytest.param("http", ("--async",), id="http-async"),
        pytest.param("http", ("-b", "4", "--input-tensor-format=json"), id="http-json-batches"),
        pytest.param("http", ("--shared-memory=system", "--output-shared-memory-size=64"), id="http-shared-memory"),
        pytest.param("grpc", (), id="grpc"),
        pytest.param("grpc", ("--async", "-b", "4"), id="grpc-async-batches"),
        pytest.param("grpc", ("--async", "--streaming"), id="grpc-stream"),
        pytest.param("grpc", ("--shared-memory=system", "--output-shared-memory-size=64"), id="grpc-shared-memory"),
    ],
)
def test_perf_analyzer_measures(
    analyzer: PerfAnalyzer, target: ServerProcess, protocol: str, flags: tuple[str, ...]
) -> None:
    measure(analyzer, target, "mlp", protocol, flags)


@pytest.mark.feature("C9", "E15")
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_perf_analyzer_sends_sequences(analyzer: PerfAnalyzer, target: ServerProcess, protocol: str) -> None:
    measure(analyzer, target, "total", protocol, ("--sequence-length=5", "--async"))


@pytest.mark.feature("C10")
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_perf_analyzer_tells_of_an_ensembles_models(
    analyzer: PerfAnalyzer, target: ServerProcess, protocol: str
) -> None:
    told = measure(analyzer, target, "pipeline", protocol, ())
    assert "Composing models:" in told
    assert "mlp, version:" in told


def measure(analyzer: PerfAnalyzer, target: ServerProcess, model: str, protocol: str, flags: tuple[str, ...]) -> str:
    """Run the analyzer against a model and return what it prints; asserts that all requests succeeded."""
    port = target.http if protocol == "http" else target.grpc
    command = [str(analyzer.program), "-m", model, "-i", protocol, "-u", f"127.0.0.1:{port}", "--concurrency-range=2"]
    done = subprocess.run(
        [*command, *_WINDOWS, *flags],
        env=analyzer.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    client, _, server = done.stdout.partition("Server:")
    assert int(re.findall(r"Request count: (\d+)", client)[0]) >= 50
    assert int(re.findall(r"Successful request count: (\d+)", server)[0]) >= 50
    assert "Errors" not in done.stdout
    assert done.stderr == ""
    return done.stdout
