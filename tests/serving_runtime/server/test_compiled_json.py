"""A server that was sent much JSON reads it by compiled code from then on."""

import json
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import server

pytest.importorskip("numba", reason="numba is not installed")

COUNT = 150_528
BEFORE_IT_PAYS_OFF = 64 * 1024 * 1024
WITHIN_S = 60.0


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    onnx_models.identity(tmp_path / "repository" / "m" / "1" / "model.onnx", shape=("N", COUNT))
    return tmp_path / "repository"


@pytest.mark.parametrize("flags", [(), ("--compiled-json=false",)])
def test_much_json_is_read_by_compiled_code_if_it_may(repository: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    values = np.random.default_rng(0).standard_normal(COUNT, dtype="f4")
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, COUNT], "data": values.tolist()}
    body = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    log = tmp_path / "log"
    with server(repository, f"--log-file={log}", *flags, scratch=tmp_path) as running, httpx.Client() as client:

        def asked() -> None:
            answer = client.post(f"{running.url}/v2/models/m/infer", content=body)
            assert answer.status_code == 200, answer.text
            head = int(answer.headers["Inference-Header-Content-Length"])
            assert answer.content[head:] == values.tobytes()

        for _ in range(BEFORE_IT_PAYS_OFF // len(body) + 1):
            asked()
        deadline = time.monotonic() + WITHIN_S
        while not flags and "JSON numbers are read by compiled code" not in log.read_text():
            assert time.monotonic() < deadline
            asked()
        asked()
    assert ("compiled code" in log.read_text()) is not bool(flags)
