"""Where the server listens, who may call what, and which headers go on: the flags of its endpoints."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import grpc
import httpx
import pytest

from serving_runtime import proto
from serving_runtime.protocol import restrictions
from serving_runtime.protocol.grpc.access import GROUPS
from serving_runtime.server.flags import command_line
from serving_runtime.server.flags import refused as refused_flags
from serving_runtime.server.flags.types import EVERYWHERE
from serving_runtime.server.sockets import StartError, bind
from tests._support.only_ipv6 import POD_IP, answers
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import command, server

OWN = Path(__file__).parents[1] / "own_backends"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    onnx_models.identity(root / "m" / "1" / "model.onnx")
    return root


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.feature("P17")
@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")
@pytest.mark.parametrize("address", ["ipv6:[::1]", "[::1]", "::1", "ipv6:::1"])
def test_all_endpoints_listen_on_ipv6(repository: Path, tmp_path: Path, address: str) -> None:
    flags = [f"--{name}-address={address}" for name in ("http", "grpc", "metrics")]
    with server(repository, *flags, scratch=tmp_path) as process:
        assert httpx.get(f"http://[::1]:{process.http}/v2/health/ready").status_code == 200
        assert httpx.get(f"http://[::1]:{process.metrics}/metrics").status_code == 200
        with grpc.insecure_channel(f"[::1]:{process.grpc}") as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            assert check(b"", timeout=20, wait_for_ready=True) == b"\x08\x01"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", process.http))


def test_without_flags_a_server_listens_on_ipv6(repository: Path) -> None:
    urls = ["http://[::1]:8000/v2/health/ready", f"http://[{POD_IP}]:8002/metrics", f"grpc://[{POD_IP}]:8001"]
    serve = [sys.executable, "-m", "serving_runtime", f"--model-repository={repository}"]
    ready, metrics, health = answers(urls, serve, os.environ).values()
    assert ready == (200, '{"ready":true}')
    assert metrics[0] == 200
    assert "nv_inference_request_success" in metrics[1]
    assert health == (200, "0801")


@pytest.mark.parametrize("has_only", [True, False], ids=["bindv6only", "both"])
def test_the_address_of_all_takes_connections_of_ipv4_too(monkeypatch: pytest.MonkeyPatch, has_only: bool) -> None:
    """Whatever `net.ipv6.bindv6only` says, which decides of a socket that does not say itself."""
    made = socket.socket

    def as_the_machine_says(family: int, kind: int) -> socket.socket:
        sock = made(family, kind)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, has_only)
        return sock

    monkeypatch.setattr(socket, "socket", as_the_machine_says)
    with bind(EVERYWHERE, 0, "http") as sock:
        assert sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 0


def test_a_kernel_without_ipv6_listens_on_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    made = socket.socket

    def without_ipv6(family: int, kind: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return made(family, kind)

    monkeypatch.setattr(socket, "socket", without_ipv6)
    with bind(EVERYWHERE, 0, "http") as sock:
        assert sock.family == socket.AF_INET
        assert sock.getsockname()[0] == "0.0.0.0"
    with pytest.raises(StartError, match=r"cannot listen on \[::1\]:0: Address family not supported"):
        bind("::1", 0, "http")


def run(repository: Path, *flags: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command(repository, *flags), capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("--http-address=ipv6:127.0.0.1", "'ipv6:127.0.0.1' is not an address"),
        ("--http-address=[localhost]", "'[localhost]' is not an IPv6 address"),
        ("--grpc-address=", "'' is not an address"),
        ("--http-header-forward-pattern=(", "'(' is not a regular expression"),
        ("--http-restricted-api=everything:a=secret", "'everything' is not one of health, metadata"),
        ("--grpc-restricted-protocol=health:a", "is not of the form GROUP,GROUP:HEADER=VALUE"),
        ("--http-thread-count=8", "--http-thread-count is not supported: one event loop serves all HTTP connections"),
        ("--allow-sagemaker=true", "--allow-sagemaker is not supported"),
    ],
)
def test_a_flag_that_cannot_be_is_refused_in_a_line(
    repository: Path, capsys: pytest.CaptureFixture[str], flag: str, sentence: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.parse([f"--model-repository={repository}", flag])
    output = capsys.readouterr().err
    assert ended.value.code == 1
    assert sentence in output
    assert output.count("\n") == 1
    assert "secret" not in output


def test_an_api_is_restricted_once(repository: Path) -> None:
    done = run(repository, "--http-restricted-api=health,logging:a=b", "--http-restricted-api=logging:c=d")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "--http-restricted-api names 'logging' twice" in done.stderr


def test_each_refused_flag_has_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    for flag, reason in refused_flags.REFUSED.items():
        with pytest.raises(SystemExit):
            command_line.parse(["--model-repository=/", flag, "1"])
        assert f"{flag} is not supported: {reason}" in capsys.readouterr().err


@pytest.mark.feature("E19")
def test_restricted_paths_open_to_their_header_only(repository: Path, tmp_path: Path) -> None:
    flags = ["--http-restricted-api=inference,model-config:admin-key=open", "--http-restricted-api=health:probe=yes"]
    ones = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1] * 4}]}
    with (
        server(repository, *flags, scratch=tmp_path) as process,
        httpx.Client(base_url=process.url) as client,
    ):
        for _ in range(2):
            assert client.post("/v2/models/m/infer", json=ones, headers={"Admin-Key": "open"}).status_code == 200
            refusal = client.post("/v2/models/m/infer", json=ones, headers={"admin-key": "wrong"})
            assert (refusal.status_code, refusal.json()) == (
                403,
                {"error": "this API is restricted, expecting header 'admin-key'"},
            )
        assert client.get("/v2/models/m/config").status_code == 403
        assert client.get("/v2/models/m").status_code == 200
        assert client.get("/v2/health/live", headers={"admin-key": "open"}).status_code == 403
        assert client.get("/v2/health/live", headers={"probe": "yes"}).status_code == 200


@pytest.mark.feature("E19")
def test_restricted_calls_open_to_their_metadata_only(repository: Path, tmp_path: Path) -> None:
    flags = [
        "--grpc-restricted-protocol=inference,metadata:Admin-Key=open",
        "--grpc-restricted-protocol=health:probe=yes",
    ]
    infer = proto.ModelInferRequest(model_name="m")
    infer.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    infer.raw_input_contents.append(bytes(16))
    with (
        server(repository, *flags, scratch=tmp_path) as process,
        grpc.insecure_channel(f"127.0.0.1:{process.grpc}") as channel,
    ):

        def status(method: str, request: bytes, *metadata: tuple[str, str]) -> str:
            call = channel.unary_unary(method)
            try:
                call(request, metadata=metadata, timeout=20, wait_for_ready=True)
            except grpc.RpcError as error:
                return f"{error.code().name}: {error.details()}"
            return "OK"

        refusal = "UNAVAILABLE: this API is restricted, expecting header 'triton-grpc-protocol-admin-key'"
        for method, request in (("ModelInfer", infer.SerializeToString()), ("ServerMetadata", b"")):
            path = f"/inference.GRPCInferenceService/{method}"
            assert status(path, request) == refusal
            assert status(path, request, ("triton-grpc-protocol-admin-key", "wrong")) == refusal
            assert status(path, request, ("admin-key", "open")) == refusal
            assert status(path, request, ("triton-grpc-protocol-admin-key", "open")) == "OK"
        stream = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        with pytest.raises(grpc.RpcError) as refused:
            list(stream(iter([infer.SerializeToString()]), timeout=20))
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
        assert (
            len(list(stream(iter([infer.SerializeToString()]), metadata=[("triton-grpc-protocol-admin-key", "open")])))
            == 1
        )
        assert status("/grpc.health.v1.Health/Check", b"").startswith("UNAVAILABLE")
        assert status("/grpc.health.v1.Health/Check", b"", ("triton-grpc-protocol-probe", "yes")) == "OK"
        assert status("/inference.GRPCInferenceService/RepositoryIndex", b"") == "OK"


@pytest.mark.feature("E16")
@pytest.mark.parametrize(("key", "word"), [("x-word-case", b"ONE"), ("y-word-case", b"one")])
def test_forwarded_metadata_reaches_the_model(tmp_path: Path, key: str, word: bytes) -> None:
    words = 'backend: "words" model_transaction_policy { decoupled: true }'
    (onnx_models.configure(tmp_path / "models" / "words", words) / "1").mkdir()
    request = proto.ModelInferRequest(model_name="words")
    request.inputs.add(name="text_input", datatype="BYTES", shape=[1]).contents.bytes_contents.append(b"one")
    flags = [f"--backend-directory={OWN}", "--grpc-header-forward-pattern=^X-WORD-"]
    with (
        server(tmp_path / "models", *flags, scratch=tmp_path) as process,
        grpc.insecure_channel(f"127.0.0.1:{process.grpc}") as channel,
    ):
        stream = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        metadata = [(key, "upper"), ("x-word-bin", b"\xff")]
        (answer,) = stream(iter([request.SerializeToString()]), metadata=metadata, timeout=20, wait_for_ready=True)
    response = proto.message("inference.ModelStreamInferResponse").FromString(answer).infer_response
    assert response.raw_output_contents[0] == b"\x03\x00\x00\x00" + word


def test_every_call_is_in_a_group_of_restrictions() -> None:
    reflection = [f"grpc.reflection.{version}.ServerReflection" for version in ("v1", "v1alpha")]
    for service in ("inference.GRPCInferenceService", "grpc.health.v1.Health", *reflection):
        methods = {method.name for method in proto._POOL.FindServiceByName(service).methods}
        assert methods <= set(GROUPS)
    assert set(GROUPS.values()) == set(restrictions.GROUPS)


def test_processes_share_a_port_where_they_all_say_so(repository: Path, tmp_path: Path) -> None:
    with server(repository, "--reuse-http-port", scratch=tmp_path) as first:
        alone = run(repository, f"--http-port={first.http}")
        assert alone.returncode == 1
        assert "Address already in use" in alone.stderr
        with server(repository, "--reuse-http-port=true", f"--http-port={first.http}", scratch=tmp_path) as second:
            assert second.http == first.http
            first.terminate()
            first.process.communicate(timeout=20)
            assert httpx.get(f"{second.url}/v2/health/ready").status_code == 200


@pytest.mark.feature("P4")
def test_a_server_has_the_name_it_was_given(repository: Path, tmp_path: Path) -> None:
    with server(repository, "--id=mine", scratch=tmp_path) as process:
        metadata = httpx.get(f"{process.url}/v2").json()
    assert metadata["name"] == "mine"
    assert "system_shared_memory" not in metadata["extensions"]
