"""`--revision NAME`: every answer says whose it is, over HTTP and gRPC, good or bad, whole or in pieces."""

import socket
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import pytest

from serving_runtime.proto import message
from serving_runtime.server.flags import command_line
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

NAME = "digits-00007"
SAID = ("fairlead-revision", NAME)
ONES = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 8], "data": [1.0] * 8}]}
SERVICE = "/inference.GRPCInferenceService"


@pytest.fixture(scope="module")
def revision(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("repository")
    onnx_models.mlp(root / "mlp" / "1" / "model.onnx")
    with server(root, f"--revision={NAME}", scratch=tmp_path_factory.mktemp("ports")) as running:
        yield running


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v2/models/mlp/infer", 200),
        ("POST", "/v2/models/nobody/infer", 404),
        ("GET", "/v2/models/mlp", 200),
        ("HEAD", "/v2/health/ready", 200),
        ("PUT", "/v2/models/mlp/infer", 405),
    ],
)
def test_every_answer_over_http_says_once_whose_it_is(
    revision: ServerProcess, method: str, path: str, status: int
) -> None:
    answer = httpx.request(method, revision.url + path, json=ONES if method == "POST" else None)
    assert answer.status_code == status
    assert answer.headers.get_list("fairlead-revision") == [NAME]


def test_what_is_no_http_is_refused_by_the_revision(revision: ServerProcess) -> None:
    with socket.create_connection(("127.0.0.1", revision.http), timeout=20) as client:
        client.sendall(b"nonsense\r\n\r\n")
        head = client.makefile("rb").read().partition(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 400 ")
    assert head.count(f"fairlead-revision: {NAME}".encode()) == 1


def test_an_answer_over_grpc_begins_with_it(revision: ServerProcess) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{revision.grpc}") as channel:
        _, call = channel.unary_unary(f"{SERVICE}/ModelInfer").with_call(_infer("mlp"), timeout=20)
        _, health = channel.unary_unary("/grpc.health.v1.Health/Check").with_call(b"", timeout=20)
    for done in (call, health):
        assert SAID in done.initial_metadata()
        assert SAID not in done.trailing_metadata()


def test_an_error_over_grpc_stays_one_frame_and_has_it(revision: ServerProcess) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{revision.grpc}") as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(f"{SERVICE}/ModelInfer")(_infer("nobody"), timeout=20)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert caught.value.initial_metadata() == ()
    assert SAID in caught.value.trailing_metadata()


def test_a_stream_begins_with_it(revision: ServerProcess) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{revision.grpc}") as channel:
        stream = channel.stream_stream(f"{SERVICE}/ModelStreamInfer")(iter([_infer("mlp")]), timeout=20)
        assert SAID in stream.initial_metadata()
        assert len(list(stream)) == 1
        assert SAID not in stream.trailing_metadata()


def test_a_server_of_nobodys_says_nothing(shared: ServerProcess) -> None:
    assert "fairlead-revision" not in httpx.get(f"{shared.url}/v2").headers
    with grpc.insecure_channel(f"127.0.0.1:{shared.grpc}") as channel:
        _, call = channel.unary_unary(f"{SERVICE}/ServerLive").with_call(b"", timeout=20)
    assert "fairlead-revision" not in dict(call.initial_metadata())


@pytest.mark.parametrize("name", ["two words", "a\r\nset-cookie: b", "-digits", "é"])
def test_a_name_that_no_header_can_carry_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command_line.parse([f"--model-repository={tmp_path}", f"--revision={name}"])
    assert "--revision: " in capsys.readouterr().err


def _infer(model: str) -> bytes:
    request = message("inference.ModelInferRequest")(model_name=model)
    request.inputs.add(name="x", datatype="FP32", shape=[1, 8])
    request.raw_input_contents.append(bytes(32))
    return bytes(request.SerializeToString())
