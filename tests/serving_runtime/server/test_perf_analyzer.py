"""Triton's own load generator against a real server: it reads metadata, config and statistics before it measures."""

from collections.abc import Iterator

import pytest

from tests.servers.clients import PerfAnalyzer, perf_analyzer
from tests.servers.parts import MissingPartError, skip_or_fail
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

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


PROTOCOLS = pytest.mark.parametrize("protocol", ["http", "grpc"])

HTTP = {
    "plain": (),
    "async": ("--async",),
    "json-batches": ("-b", "4", "--input-tensor-format=json"),
    "shared-memory": ("--shared-memory=system", "--output-shared-memory-size=64"),
}
GRPC = {
    "plain": (),
    "async-batches": ("--async", "-b", "4"),
    "stream": ("--async", "--streaming"),
    "shared-memory": ("--shared-memory=system", "--output-shared-memory-size=64"),
}


@pytest.mark.parametrize(
    ("protocol", "flags"),
    [
        *[pytest.param("http", flags, id=f"http-{name}") for name, flags in HTTP.items()],
        *[pytest.param("grpc", flags, id=f"grpc-{name}") for name, flags in GRPC.items()],
    ],
)
def test_perf_analyzer_measures(
    analyzer: PerfAnalyzer, target: ServerProcess, protocol: str, flags: tuple[str, ...]
) -> None:
    measure(analyzer, target, "mlp", protocol, flags)


@pytest.mark.feature("C9", "E15")
@PROTOCOLS
def test_perf_analyzer_sends_sequences(analyzer: PerfAnalyzer, target: ServerProcess, protocol: str) -> None:
    measure(analyzer, target, "total", protocol, ("--sequence-length=5", "--async"))


@pytest.mark.feature("C10")
@PROTOCOLS
def test_perf_analyzer_tells_of_an_ensembles_models(
    analyzer: PerfAnalyzer, target: ServerProcess, protocol: str
) -> None:
    told = measure(analyzer, target, "pipeline", protocol, ())
    assert "Composing models:" in told
    assert "mlp, version:" in told


def measure(analyzer: PerfAnalyzer, target: ServerProcess, model: str, protocol: str, flags: tuple[str, ...]) -> str:
    """Run the analyzer against a model and return what it prints; asserts that all requests succeeded."""
    port = target.http if protocol == "http" else target.grpc
    printed = analyzer.measured(model, protocol, f"127.0.0.1:{port}", *_WINDOWS, *flags)
    assert "Errors" not in printed
    return printed
