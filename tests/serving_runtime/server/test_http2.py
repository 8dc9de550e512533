"""gRPC on HTTP/2 of our own, with the tools that know the protocol best."""

import asyncio
import shutil
import socket
import struct
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import envoy
import grpc
import numpy as np
import pytest
from onnx import TensorProto

from serving_runtime import proto
from tests.servers.h2spec import h2spec
from tests.servers.parts import MissingPartError, free_port, program, skip_or_fail
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

SERVICE = "/inference.GRPCInferenceService"
OWN = Path(__file__).parents[1] / "own_backends"
MEBI = 1 << 20
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of `echo` (x [-1,-1] -> y, the same) and `repeat`, which answers n with 0, 1 ... n-1."""
    root = tmp_path_factory.mktemp("repository")
    onnx_models.identity(root / "echo" / "1" / "model.onnx", TensorProto.FLOAT, ("N", "W"))
    repeat = 'backend: "repeat" model_transaction_policy { decoupled: true }'
    (onnx_models.configure(root / "repeat", repeat) / "1").mkdir()
    flags = (f"--backend-directory={OWN}",)
    with server(root, *flags, scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


def echo(values: Any) -> bytes:
    """Return a request for `echo`."""
    request = proto.ModelInferRequest(model_name="echo")
    request.inputs.add(name="x", datatype="FP32", shape=[1, len(values)])
    request.raw_input_contents.append(values.tobytes())
    return bytes(request.SerializeToString())


def echoed(answer: bytes) -> Any:
    return np.frombuffer(proto.ModelInferResponse.FromString(answer).raw_output_contents[0], "<f4")


def repeat(count: int) -> bytes:
    """Return a request for `repeat`."""
    request = proto.ModelInferRequest(model_name="repeat")
    request.inputs.add(name="x", datatype="INT32", shape=[1]).contents.int_contents.append(count)
    return bytes(request.SerializeToString())


def numbers(answers: Any) -> list[int]:
    kind = proto.message("inference.ModelStreamInferResponse")
    found = [kind.FromString(answer).infer_response for answer in answers]
    return [int(np.frombuffer(answer.raw_output_contents[0], "<i4")[0]) for answer in found]


def test_every_rule_that_h2spec_knows_is_kept(served: ServerProcess) -> None:
    try:
        program = h2spec()
    except MissingPartError as missing:
        skip_or_fail(missing)
    arguments = [str(program), "-h", "127.0.0.1", "-p", str(served.grpc), "-o", "20"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    total = done.stdout.strip().splitlines()[-1]
    assert done.returncode == 0, done.stdout[-4000:]
    assert total == "145 tests, 145 passed, 0 skipped, 0 failed"


def h2load(port: int, body: Path, *arguments: str) -> str:
    """Return what h2load tells of ModelInfer."""
    try:
        tool = program("h2load", "nghttp2-client", [Path(shutil.which("h2load") or "/usr/bin/h2load").parent])
    except MissingPartError as missing:
        skip_or_fail(missing)
    command = [str(tool), "-t1", *arguments, f"--data={body}", "--header=content-type: application/grpc"]
    command += ["--header=te: trailers", f"http://127.0.0.1:{port}{SERVICE}/ModelInfer"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.parametrize(
    "flags", [("-c1", "-m1"), ("-c8", "-m1"), ("-c4", "-m64"), ("-c2", "-m8", "--header-table-size=0")]
)
def test_h2load_gets_an_answer_to_every_request(served: ServerProcess, tmp_path: Path, flags: tuple[str, ...]) -> None:
    message = echo(np.ones(64, "<f4"))
    body = tmp_path / "body"
    body.write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
    before = served.metric("nv_inference_request_success", model="echo")
    told = h2load(served.grpc, body, "-n2000", *flags)
    assert "2000 succeeded, 0 failed, 0 errored, 0 timeout" in told
    assert served.metric("nv_inference_request_success", model="echo") - before == 2000


@pytest.mark.parametrize("size", [1, 16_380, 65_536, 3 * MEBI, 15 * MEBI])
def test_tensors_of_all_sizes_go_both_ways_at_once(served: ServerProcess, size: int) -> None:
    values = [np.arange(number, number + size, dtype="<f4") for number in range(3)]
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc}", options=UNLIMITED) as channel:
        infer = channel.unary_unary(f"{SERVICE}/ModelInfer")
        calls = [infer.future(echo(given), timeout=60) for given in values]
        for given, call in zip(values, calls, strict=True):
            assert np.array_equal(echoed(call.result()), given)


def test_large_tensors_go_both_ways_in_a_stream(served: ServerProcess) -> None:
    values = [np.full(MEBI, number, "<f4") for number in range(12)]
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc}", options=UNLIMITED) as channel:
        stream = channel.stream_stream(f"{SERVICE}/ModelStreamInfer")
        answers = stream(iter([echo(given) for given in values]), timeout=60)
        kind = proto.message("inference.ModelStreamInferResponse")
        for given, answer in zip(values, answers, strict=True):
            response = kind.FromString(answer).infer_response
            assert np.array_equal(np.frombuffer(response.raw_output_contents[0], "<f4"), given)


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_requests_are_understood(served: ServerProcess, compression: grpc.Compression) -> None:
    values = np.zeros(100_000, "<f4")
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc}", compression=compression) as channel:
        assert np.array_equal(echoed(channel.unary_unary(f"{SERVICE}/ModelInfer")(echo(values), timeout=60)), values)


def test_a_compressed_request_that_grows_beyond_the_limit_is_refused(served: ServerProcess) -> None:
    with (
        grpc.insecure_channel(
            f"127.0.0.1:{served.grpc}", compression=grpc.Compression.Gzip, options=UNLIMITED
        ) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        channel.unary_unary(f"{SERVICE}/ModelInfer")(bytes(65 * MEBI), timeout=60)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_what_is_no_method_is_unimplemented_for_calls_of_every_kind(served: ServerProcess) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc}") as channel:
        silent = iter(threading.Event().wait, True)
        for call in (
            lambda: channel.unary_unary("/no.Service/Method")(b"", timeout=20),
            lambda: list(channel.stream_stream(f"{SERVICE}/NoMethod")(silent, timeout=20)),
        ):
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
            assert "there is no method /" in (caught.value.details() or "")


def test_an_errors_words_arrive_whatever_they_are_made_of(served: ServerProcess) -> None:
    request = proto.ModelInferRequest(model_name="100 % größer\n")
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc}") as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(f"{SERVICE}/ModelInfer")(request.SerializeToString(), timeout=20)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert "100 % größer\n" in (caught.value.details() or "")


def test_http_that_is_no_grpc_is_told_what_the_port_speaks(served: ServerProcess) -> None:
    tool = shutil.which("nghttp")
    if tool is None:
        skip_or_fail(
            MissingPartError("nghttp is not installed; `make deps` installs the Debian package nghttp2-client")
        )
    told = subprocess.run(
        [tool, "-v", f"http://127.0.0.1:{served.grpc}/"], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    assert ":status: 405" in told
    assert "gRPC takes POST only" in told


ENVOY = """
admin: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {admin} }} }} }}
static_resources:
  listeners:
  - address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: in
          codec_type: HTTP2
          http_filters:
          - name: router
            typed_config: {{ "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes: [{{ match: {{ prefix: / }}, route: {{ cluster: server, timeout: 0s }} }}]
  clusters:
  - name: server
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config:
          http2_protocol_options: {{ connection_keepalive: {{ interval: 1s, timeout: 5s }} }}
    load_assignment:
      cluster_name: server
      endpoints:
      - lb_endpoints:
        - endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {server} }} }} }}
"""


@contextmanager
def through_envoy(target: int, folder: Path) -> Iterator[tuple[int, int]]:
    """Yield the port of an Envoy before the server, and that of its administration."""
    ports = {"port": free_port(), "admin": free_port(), "server": target}
    config = folder / "envoy.yaml"
    config.write_text(ENVOY.format(**ports))
    binary = Path(envoy.__file__).parent / "_bin" / "envoy"
    command = [str(binary), "-c", str(config), "--use-dynamic-base-id", "--concurrency", "1", "-l", "error"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", ports["port"]), timeout=5).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline, "Envoy did not come up"
                    assert process.poll() is None, "Envoy ended"
                    time.sleep(0.05)
            yield ports["port"], ports["admin"]
        finally:
            process.kill()


def test_envoy_carries_calls_of_every_kind(served: ServerProcess, tmp_path: Path) -> None:
    with through_envoy(served.grpc, tmp_path) as (port, admin):
        with grpc.insecure_channel(f"127.0.0.1:{port}", options=UNLIMITED) as channel:
            infer = channel.unary_unary(f"{SERVICE}/ModelInfer")
            values = np.arange(4 * MEBI, dtype="<f4")
            assert np.array_equal(echoed(infer(echo(values), timeout=60)), values)
            calls = [infer.future(echo(values[: 10 * number + 1]), timeout=60) for number in range(300)]
            assert [len(echoed(call.result())) for call in calls] == [10 * number + 1 for number in range(300)]
            stream = channel.stream_stream(f"{SERVICE}/ModelStreamInfer")
            assert numbers(stream(iter([repeat(2000)]), timeout=60)) == list(range(2000))
            with pytest.raises(grpc.RpcError) as caught:
                infer(proto.ModelInferRequest(model_name="nobody").SerializeToString(), timeout=60)
            assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        page = (
            urllib.request.urlopen(f"http://127.0.0.1:{admin}/stats?filter=cluster.server", timeout=20).read().decode()
        )
        found = dict(line.rsplit(": ", 1) for line in page.splitlines() if ": " in line)
        for name in ("upstream_rq_rx_reset", "upstream_cx_protocol_error", "upstream_rq_5xx"):
            assert found.get(f"cluster.server.{name}", "0") == "0", name


async def test_no_call_is_lost_when_a_server_stops_under_load(tmp_path: Path) -> None:
    onnx_models.identity(tmp_path / "repository" / "echo" / "1" / "model.onnx", TensorProto.FLOAT, ("N", "W"))
    with server(tmp_path / "repository", scratch=tmp_path) as process:
        answered, unanswered = 0, []

        async def ask(channel: grpc.aio.Channel) -> None:
            nonlocal answered
            infer = channel.unary_unary(f"{SERVICE}/ModelInfer")
            while not unanswered:
                try:
                    await infer(echo(np.ones(100, "<f4")), timeout=60)
                except grpc.aio.AioRpcError as error:
                    unanswered.append(error)
                    return
                answered += 1
                if answered == 200:
                    process.terminate()

        channels = [grpc.aio.insecure_channel(f"127.0.0.1:{process.grpc}", options=[("n", n)]) for n in range(3)]
        await asyncio.gather(*[ask(channel) for channel in channels for _ in range(10)])
        for channel in channels:
            await channel.close()
        assert await asyncio.to_thread(process.process.wait, 60) == 0
        assert answered >= 200
        for error in unanswered:  # nobody listens any more: these calls never left
            assert error.code() is grpc.StatusCode.UNAVAILABLE, error
            assert "onnect" in (error.details() or ""), error


def memory_bytes(target: ServerProcess) -> int:
    return int(Path(f"/proc/{target.process.pid}/statm").read_text().split()[1]) * 4096


def greeting(window: int = 65_535) -> bytes:
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, struct.pack(">HI", 4, window))


def frame(kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + stream_id.to_bytes(4, "big") + payload


def head(method: str) -> bytes:
    fields = {":method": "POST", ":scheme": "http", ":path": f"{SERVICE}/{method}", "content-type": "application/grpc"}
    return b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )


def call(number: int, method: str, message: bytes) -> bytes:
    content = b"\0" + len(message).to_bytes(4, "big") + message
    return frame(1, 4, number, head(method)) + frame(0, 1, number, content)


def test_a_client_that_reads_nothing_takes_bounded_memory_and_holds_up_nobody(served: ServerProcess) -> None:
    decoupled = repeat(-1)
    with socket.create_connection(("127.0.0.1", served.grpc), timeout=30) as deaf:
        deaf.sendall(greeting(window=0))
        before = memory_bytes(served)
        deaf.sendall(b"".join(call(number, "ModelStreamInfer", decoupled) for number in range(1, 40, 2)))
        with grpc.insecure_channel(f"127.0.0.1:{served.grpc}") as channel:
            infer = channel.unary_unary(f"{SERVICE}/ModelInfer")
            for _ in range(50):
                assert len(echoed(infer(echo(np.ones(10, "<f4")), timeout=60))) == 10
        assert memory_bytes(served) - before < 64 * MEBI


def test_hundreds_of_half_requests_take_no_memory_for_what_they_announce(served: ServerProcess) -> None:
    before = memory_bytes(served)
    half = b"\0" + (60 * MEBI).to_bytes(4, "big") + b"x"
    with socket.create_connection(("127.0.0.1", served.grpc), timeout=30) as client:
        begun = [frame(1, 4, number, head("ModelInfer")) + frame(0, 0, number, half) for number in range(1, 600, 2)]
        client.sendall(greeting() + b"".join(begun))
        with grpc.insecure_channel(f"127.0.0.1:{served.grpc}") as channel:
            values = np.ones(10, "<f4")
            assert np.array_equal(
                echoed(channel.unary_unary(f"{SERVICE}/ModelInfer")(echo(values), timeout=60)), values
            )
        assert memory_bytes(served) - before < 32 * MEBI


def test_the_farewell_of_a_failed_connection_is_read_whatever_the_client_still_sends(served: ServerProcess) -> None:
    """A server that closed with bytes of the client unread would reset the connection."""
    pings = b"".join(frame(6, 0, 0, number.to_bytes(8, "big")) for number in range(100_000))
    with socket.create_connection(("127.0.0.1", served.grpc), timeout=30) as client:
        client.sendall(greeting() + pings)
        received = b""
        while piece := client.recv(65536):
            received += piece
    assert b"too_many_pings" in received


def test_a_deadline_is_the_servers_too(served: ServerProcess) -> None:
    """A client that does not keep its own deadline is told of it."""
    timed = head("ModelStreamInfer") + b"\0\x0cgrpc-timeout\x04200m"
    with socket.create_connection(("127.0.0.1", served.grpc), timeout=30) as client:
        client.sendall(greeting() + frame(1, 4, 1, timed))
        received = b""
        while b"grpc-status" not in received:
            piece = client.recv(65536)
            assert piece, "the connection ended"
            received += piece
        assert b"grpc-status\x014" in received
        assert b"Deadline Exceeded" in received
