"""A request that makes a graph divide the least integer by -1: the processor would end the server (SIGFPE)."""

from pathlib import Path

import httpx
import pytest
from onnx import TensorProto, helper

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import server

LEAST = -(2**63)


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_a_request_does_not_end_the_server(tmp_path: Path, backend: str) -> None:
    pytest.importorskip(backend, reason=f"{backend} is not installed")
    for operator in ("Div", "Mod"):
        rows = (TensorProto.INT64, ("N", 1))
        nodes = [helper.make_node(operator, ["x", "w"], ["y"])]
        folder = tmp_path / "models" / operator.lower()
        onnx_models.save(folder / "1" / "model.onnx", nodes, [("x", *rows), ("w", *rows)], [("y", *rows)])
        (folder / "config.pbtxt").write_text(f'backend: "{backend}"')
    with server(tmp_path / "models", scratch=tmp_path) as process:
        for operator in ("div", "mod"):
            tensors = [
                {"name": name, "datatype": "INT64", "shape": [1, 1], "data": [value]}
                for name, value in (("x", LEAST), ("w", -1))
            ]
            url = f"{process.url}/v2/models/{operator}/infer"
            answer = httpx.post(url, json={"inputs": tensors}, timeout=30)
            assert answer.status_code == 200, answer.text
        process.terminate()
        assert process.process.wait(30) == 0
