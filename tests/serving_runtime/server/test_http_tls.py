"""TLS of the HTTP endpoint against a real server: who is let in, large bodies both ways, refusals, and the end."""

import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest
from onnx import TensorProto

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.authority import Authority
from tests.serving_runtime._support.processes import ServerProcess, command, server

TRITON = """
import sys
import numpy as np
import tritonclient.http as v2
port, root = sys.argv[1:]
client = v2.InferenceServerClient(f"127.0.0.1:{port}", ssl=True, ssl_options={"ca_certs": root})
x = v2.InferInput("x", [1, 4], "FP32")
x.set_data_from_numpy(np.ones((1, 4), np.float32))
assert client.infer("echo", [x]).as_numpy("y").tolist() == [[1, 1, 1, 1]]
"""


@dataclass(frozen=True)
class Secured:
    """A server that speaks TLS, and what its clients trust."""

    process: ServerProcess
    root: Path

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.process.http}"

    def context(self) -> ssl.SSLContext:
        trusting = ssl.create_default_context(cafile=str(self.root))
        trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return trusting

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, verify=self.context(), timeout=30, trust_env=False)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    onnx_models.identity(root / "echo" / "1" / "model.onnx", TensorProto.FLOAT, ("N", "W"))
    return root


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"), "ours")


def flags(ours: Authority) -> list[str]:
    cert, key = ours.issue("server")
    return ["--http-use-ssl", f"--http-server-cert={cert}", f"--http-server-key={key}"]


@pytest.fixture(scope="module")
def secured(repository: Path, ours: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with server(repository, *flags(ours), scratch=tmp_path_factory.mktemp("ports")) as process:
        yield Secured(process, ours.root)


def test_who_trusts_the_certificate_is_answered_and_nobody_in_plain_text(
    secured: Secured, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with secured.client() as client:
        for _ in range(2):  # of one connection
            assert client.get("/v2/health/ready").status_code == 200
    stranger = Authority(tmp_path_factory.mktemp("strangers"), "theirs")
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(f"{secured.url}/v2/health/ready", verify=Secured(secured.process, stranger.root).context())
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{secured.process.url}/v2/health/ready", timeout=20)
    assert secured.process.metric("nv_inference_request_success") >= 0, "the metrics port is plain"


def test_tritonclient_asks_over_tls(secured: Secured) -> None:
    arguments = [sys.executable, "-c", TRITON, str(secured.process.http), str(secured.root)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_large_bodies_pass_both_ways_and_what_follows_is_answered(secured: Secured) -> None:
    values = np.arange(2 << 20, dtype="<f4")
    part = {"name": "x", "datatype": "FP32", "shape": [1, len(values)], "parameters": {"binary_data_size": 8 << 20}}
    head = json.dumps({"inputs": [part], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    with secured.client() as client:
        for _ in range(3):
            answer = client.post("/v2/models/echo/infer", content=head + values.tobytes(), headers=headers)
            assert answer.status_code == 200, answer.text
            length = int(answer.headers["Inference-Header-Content-Length"])
            assert answer.content[length:] == values.tobytes()


def test_a_request_behind_a_large_body_in_the_same_write_is_answered(secured: Secured) -> None:
    content = b"{" + b" " * (1 << 20) + b"}"
    first = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(content) + content
    second = b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    with (
        socket.create_connection(("127.0.0.1", secured.process.http), timeout=20) as plain,
        secured.context().wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        client.sendall(first + second)
        received = b"".join(iter(lambda: client.recv(65536), b""))
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1 200 OK") == 1


def test_what_is_no_http_is_refused_and_the_connection_ends(secured: Secured) -> None:
    with (
        socket.create_connection(("127.0.0.1", secured.process.http), timeout=30) as plain,
        secured.context().wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        client.sendall(b"nothing of it\r\n\r\n")
        received = b"".join(iter(lambda: client.recv(65536), b""))
    assert received.startswith(b"HTTP/1.1 400 ")
    assert b"Connection: close" in received


def test_a_client_that_never_shakes_hands_is_ended(secured: Secured) -> None:
    with socket.create_connection(("127.0.0.1", secured.process.http), timeout=40) as silent:
        assert silent.recv(1) == b""


def test_a_server_with_silent_clients_ends_in_time(repository: Path, ours: Authority, tmp_path: Path) -> None:
    with server(repository, *flags(ours), scratch=tmp_path) as process:
        secured = Secured(process, ours.root)
        with (
            secured.client() as client,
            socket.create_connection(("127.0.0.1", process.http), timeout=20) as plain,
            secured.context().wrap_socket(plain, server_hostname="127.0.0.1") as idle,
        ):
            assert client.get("/v2/health/live").status_code == 200
            began = time.monotonic()
            process.terminate()
            assert process.process.wait(25) == 0
            assert time.monotonic() - began < 20
            del idle


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        pytest.param(["--http-use-ssl"], "TLS on the HTTP port needs --http-server-cert", id="no certificate"),
        pytest.param(["--http-server-key={key}"], "no use without --http-use-ssl", id="a key without TLS"),
        pytest.param(
            ["--http-use-ssl", "--http-server-cert={cert}", "--http-server-key=/nowhere"],
            "--http-server-key /nowhere cannot be read: No such file",
            id="a file that is not there",
        ),
        pytest.param(
            ["--http-use-ssl", "--http-server-cert={key}", "--http-server-key={key}"],
            "are not a certificate in PEM form and its key",
            id="no certificate in the file",
        ),
    ],
)
def test_tls_that_cannot_work_prevents_the_start(
    repository: Path, ours: Authority, asked: list[str], sentence: str
) -> None:
    cert, key = ours.issue("other")
    given = [flag.format(cert=cert, key=key) for flag in asked]
    done = subprocess.run(command(repository, *given), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
