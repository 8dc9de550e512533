"""Clients that mean harm, or know no better, against a real server: it refuses, keeps its memory and serves others."""

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("repository")
    onnx_models.mlp(onnx_models.configure(root / "mlp", "max_batch_size: 8 dynamic_batching { }") / "1" / "model.onnx")
    with server(root, scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


def infer(target: ServerProcess) -> httpx.Response:
    x = {"name": "x", "shape": [1, 8], "datatype": "FP32", "data": [0] * 8}
    return httpx.post(f"{target.url}/v2/models/mlp/infer", json={"inputs": [x]}, timeout=30)


def memory_bytes(target: ServerProcess) -> int:
    pages = int(Path(f"/proc/{target.process.pid}/statm").read_text().split()[1])
    return pages * 4096


def raw(target: ServerProcess, *pieces: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", target.http), timeout=30)
    for piece in pieces:
        client.sendall(piece)
    return client


def status(client: socket.socket) -> int:
    """Return the status of the next answer; a connection that just ends is a failure of the test."""
    with client.makefile("rb") as stream:
        return int(stream.readline().split()[1])


def body(shape: object, size: int, **more: object) -> bytes:
    x = {"name": "x", "shape": shape, "datatype": "FP32", "parameters": {"binary_data_size": size}}
    return json.dumps({"inputs": [x], **more}).encode()


def post(content: bytes, *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    head = f"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


LIES = [
    pytest.param([2**40, 3], id="more than any memory"),
    pytest.param([2**62, 4], id="a product that overflows 64 bits"),
    pytest.param([2**31, 2**31, 2**31], id="a product that overflows twice"),
    pytest.param([-1, 8], id="a negative dimension"),
    pytest.param([1] * 40, id="more dimensions than arrays have"),
    pytest.param([1.5, 8], id="half a dimension"),
    pytest.param([1, 9], id="one more than was sent"),
]


@pytest.mark.parametrize("shape", LIES)
def test_a_shape_that_lies_is_a_400(target: ServerProcess, shape: list[object]) -> None:
    header = body(shape, 32)
    with raw(target, post(header + bytes(32), f"Inference-Header-Content-Length: {len(header)}")) as client:
        assert status(client) == 400
    assert infer(target).status_code == 200


GRPC_LIES = """
import sys
import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc
stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}"))
for shape in ([2**40, 3], [2**62, 4], [-1, 8], [1] * 40, [1, 9]):
    request = service_pb2.ModelInferRequest(model_name="mlp", raw_input_contents=[bytes(32)])
    request.inputs.add(name="x", datatype="FP32", shape=shape)
    try:
        stub.ModelInfer(request, timeout=30)
        raise AssertionError(f"{shape} was answered")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, (shape, error)
"""


def test_a_shape_that_lies_is_invalid_over_grpc(shared: ServerProcess) -> None:
    command = [sys.executable, "-c", GRPC_LIES, str(shared.grpc)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert infer(shared).status_code == 200


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(b"POST /v2 HTTP/1.1\r\nContent-Length: 9999999999999\r\n\r\n", 413, id="a length of terabytes"),
        pytest.param(b"POST /v2 HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400, id="a negative length"),
        pytest.param(
            b"POST /v2 HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            id="two lengths, as smugglers send",
        ),
        pytest.param(b"GET /v2 HTTP/1.1\r\n" + b"A: b\r\n" * 20_000, 431, id="headers without end"),
        pytest.param(b"GET /" + b"a" * 100_000, 431, id="a path without end"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300), 400, id="TLS on a plain port"),
        pytest.param(post(b"[" * 100_000), 400, id="JSON as deep as it is long"),
        pytest.param(post(b'{"inputs":' + b"9" * 400_000 + b"}"), 400, id="a number of a million digits"),
        pytest.param(post(b"{}", "Inference-Header-Content-Length: 99"), 400, id="a JSON length beyond the body"),
        pytest.param(post(b"\x00" * 1000), 400, id="no JSON at all"),
    ],
)
def test_nonsense_gets_its_status(target: ServerProcess, sent: bytes, expected: int) -> None:
    with raw(target) as client:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused early; the answer can be read
            client.sendall(sent)
        assert status(client) == expected
    assert infer(target).status_code == 200


def test_hundreds_of_clients_that_send_half_a_request_hold_up_nobody(target: ServerProcess) -> None:
    before = memory_bytes(target)
    half = b"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n{"
    halves = [raw(target, half) for _ in range(300)]
    try:
        assert all(infer(target).status_code == 200 for _ in range(20))
        assert memory_bytes(target) - before < 64 * MEGABYTE, "memory was set aside for what was only announced"
    finally:
        for client in halves:
            client.close()


def test_clients_that_vanish_in_the_middle_leave_nothing_behind(target: ServerProcess) -> None:
    whole = post(body([1, 8], 32) + bytes(32), f"Inference-Header-Content-Length: {len(body([1, 8], 32))}")
    for cut in range(1, len(whole), 7):
        with raw(target, whole[:cut]) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # RST on close
    assert infer(target).status_code == 200
    until(lambda: open_sockets(target) <= 8 and target.metric("fairlead_inflight_requests") == 0)


def test_a_thousand_pipelined_requests_are_all_answered(target: ServerProcess) -> None:
    asked = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n" * 999
    last = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with raw(target, asked + last) as client, client.makefile("rb") as stream:
        assert stream.read().count(b"HTTP/1.1 200 OK\r\n") == 1000


def test_huge_requests_one_after_the_other_do_not_pile_up(target: ServerProcess) -> None:
    content = bytes(60 * MEGABYTE)
    header = body([1, 8], len(content))
    request = post(header + content, f"Inference-Header-Content-Length: {len(header)}")
    for _ in range(2):  # from the second on memory is what it is
        with raw(target, request) as client:
            assert status(client) == 400
    before = memory_bytes(target)
    for _ in range(6):
        with raw(target, request) as client:
            assert status(client) == 400
    assert memory_bytes(target) - before < 90 * MEGABYTE


def open_sockets(target: ServerProcess) -> int:
    return sum(1 for fd in Path(f"/proc/{target.process.pid}/fd").iterdir() if is_socket(fd))


def is_socket(fd: Path) -> bool:
    try:
        return fd.readlink().name.startswith("socket:")
    except FileNotFoundError:  # closed meanwhile
        return False


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.02)
