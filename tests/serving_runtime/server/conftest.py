"""One server with many models, for all tests that only ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from onnx import TensorProto

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

TYPES = {
    "bool": TensorProto.BOOL,
    "uint8": TensorProto.UINT8,
    "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "int8": TensorProto.INT8,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "fp16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "fp32": TensorProto.FLOAT,
    "fp64": TensorProto.DOUBLE,
    "bytes": TensorProto.STRING,
}

TOTAL = """max_batch_size: 4 sequence_batching {
    state { input_name: "total_in" output_name: "total_out" data_type: TYPE_FP32 dims: [2] } }"""

TWICE = """platform: "ensemble" max_batch_size: 4
    input { name: "x" data_type: TYPE_FP32 dims: [2] } output { name: "y" data_type: TYPE_FP32 dims: [2] }
    ensemble_scheduling {
        step { model_name: "identity_fp32" model_version: -1
            input_map { key: "x" value: "x" } output_map { key: "y" value: "u" } }
        step { model_name: "identity_fp32" model_version: -1
            input_map { key: "x" value: "u" } output_map { key: "y" value: "y" } } }"""


@pytest.fixture(scope="package")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository of: cached, identity_<datatype>, mlp, picky, total (sequences), twice (an ensemble),
    versions (1, 3)."""
    root = tmp_path_factory.mktemp("repository")
    for name, kind in TYPES.items():
        onnx_models.identity(root / f"identity_{name}" / "1" / "model.onnx", kind, ("N", 2))
    onnx_models.mlp(onnx_models.configure(root / "mlp", "max_batch_size: 8 dynamic_batching { }") / "1" / "model.onnx")
    onnx_models.picky(root / "picky" / "1" / "model.onnx")
    onnx_models.running_total(onnx_models.configure(root / "total", TOTAL) / "1" / "model.onnx")
    (root / "twice" / "1").mkdir(parents=True)
    onnx_models.configure(root / "twice", TWICE)
    cached = onnx_models.configure(root / "cached", "max_batch_size: 8 response_cache { enable: true }")
    onnx_models.mlp(cached / "1" / "model.onnx")
    versions = onnx_models.configure(root / "versions", "version_policy { all { } }")
    onnx_models.mlp(versions / "1" / "model.onnx", (4, 2))
    onnx_models.mlp(versions / "3" / "model.onnx", (4, 3))
    return root


@pytest.fixture(scope="package")
def shared(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of `models`."""
    with server(models, "--cache-config=local,size=100000", scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process
