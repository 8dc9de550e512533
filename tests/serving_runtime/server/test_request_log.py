"""`--log-verbose 1`: one line per request, with the id that the gateway or the client gave it."""

import re
from contextlib import suppress
from pathlib import Path

import grpc
import httpx
import pytest

from serving_runtime.proto import message
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import server

ONES = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 8], "data": [1.0] * 8}]}
LINE = re.compile(r"request_id=(\S+) model=(\S+) call='(.+)' status=(\S+) took_us=(\d+)$", re.MULTILINE)
Lines = list[tuple[str, str, str, str]]


def lines(log: str) -> Lines:
    """Return what was noted, without the times, which are all of some length."""
    found = LINE.findall(log)
    assert all(int(took_us) > 0 for *_, took_us in found)
    return [(request_id, model, call, status) for request_id, model, call, status, _ in found]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    onnx_models.mlp(tmp_path / "repository" / "mlp" / "1" / "model.onnx")
    return tmp_path / "repository"


def ask(url: str, path: str, request_id: str | None) -> None:
    headers = {} if request_id is None else {"X-Request-ID": request_id}
    httpx.post(url + path, json=ONES, headers=headers)


def infer(port: int, *metadata: tuple[str, str], model: str = "mlp") -> None:
    request = message("inference.ModelInferRequest")(model_name=model)
    request.inputs.add(name="x", datatype="FP32", shape=[1, 8])
    request.raw_input_contents.append(bytes(32))
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        with suppress(grpc.RpcError):
            call(request.SerializeToString(), metadata=metadata, timeout=20)


def said(repository: Path, scratch: Path, *flags: str) -> str:
    with server(repository, *flags, scratch=scratch) as running:
        ask(running.url, "/v2/models/mlp/infer", "order-66")
        ask(running.url, "/v2/models/nobody/infer?trace=no", None)
        ask(running.url, "/v2/models/mlp/infer", "two words")
        httpx.get(f"{running.url}/v2/health/ready")
        infer(running.grpc, ("x-request-id", "order-67"))
        infer(running.grpc, model="nobody\nrequest_id=forged")
        running.terminate()
        assert running.process.stdout is not None
        return running.process.stdout.read()


def test_each_request_is_one_line_with_its_id(repository: Path, tmp_path: Path) -> None:
    log = said(repository, tmp_path, "--log-verbose=1")
    assert lines(log) == [
        ("order-66", "mlp", "POST /v2/models/mlp/infer", "200"),
        ("-", "nobody", "POST /v2/models/nobody/infer", "404"),
        ("-", "mlp", "POST /v2/models/mlp/infer", "200"),
        ("order-67", "mlp", "ModelInfer", "OK"),
        ("-", "-", "ModelInfer", "NOT_FOUND"),
    ]


def test_nothing_is_noted_unless_asked_for(repository: Path, tmp_path: Path) -> None:
    log = said(repository, tmp_path)
    assert "request_id" not in log
    assert "ready on" in log
