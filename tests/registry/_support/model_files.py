"""Model files, and an artifact store of a test's own: fixtures for several rooms."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from pytest_django.fixtures import Settings


def _linear_model(*, opset: int = 17, seed: int = 0) -> bytes:
    """Return an ONNX file that multiplies rows of 4 numbers with a matrix; another seed gives another digest."""
    weights = np.random.default_rng(seed).normal(size=(4, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    content: bytes = model.SerializeToString()
    return content


@pytest.fixture
def linear_model() -> Callable[..., bytes]:
    """Return a maker of ONNX files."""
    return _linear_model


@pytest.fixture
def store_folder(settings: Settings, tmp_path: Path) -> Path:
    """Give the test an artifact store of its own."""
    settings.ARTIFACTS_FOLDER = tmp_path / "artifacts"
    return tmp_path / "artifacts"
