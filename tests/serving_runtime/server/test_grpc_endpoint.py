"""The gRPC endpoint's flags against real servers: TLS, compression, addresses, and how long connections live."""

import asyncio
import socket
import ssl
import struct
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from onnx import TensorProto

from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.authority import Authority
from tests.serving_runtime._support.processes import command, server

LIVE = "/inference.GRPCInferenceService/ServerLive"
YES = b"\x08\x01"


@dataclass(frozen=True)
class Certificates:
    ours: Authority
    theirs: Authority
    cert: Path
    key: Path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    ours = Authority(folder, "ours")
    cert, key = ours.issue("server")
    return Certificates(ours, Authority(folder, "theirs"), cert, key)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    onnx_models.identity(root / "echo" / "1" / "model.onnx", TensorProto.FLOAT, ("N", "W"))
    return root


def live(port: int, credentials: grpc.ChannelCredentials) -> bytes:
    with grpc.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
        return channel.unary_unary(LIVE)(b"", timeout=20)


def credentials(root: Path, files: tuple[Path, Path] | None = None) -> grpc.ChannelCredentials:
    cert, key = files if files is not None else (None, None)
    return grpc.ssl_channel_credentials(
        root.read_bytes(), key.read_bytes() if key else None, cert.read_bytes() if cert else None
    )


def test_tls_lets_in_those_who_trust_the_servers_certificate(
    repository: Path, certificates: Certificates, tmp_path: Path
) -> None:
    flags = ["--grpc-use-ssl", f"--grpc-server-cert={certificates.cert}", f"--grpc-server-key={certificates.key}"]
    with server(repository, *flags, scratch=tmp_path) as process:
        assert live(process.grpc, credentials(certificates.ours.root)) == YES
        with pytest.raises(grpc.RpcError) as caught:
            live(process.grpc, credentials(certificates.theirs.root))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        with grpc.insecure_channel(f"127.0.0.1:{process.grpc}") as channel, pytest.raises(grpc.RpcError):
            channel.unary_unary(LIVE)(b"", timeout=20)


@pytest.mark.parametrize(("offered", "begins"), [(["h2"], b"\x04"), (["http/1.1"], b"\x07"), ([], b"\x07")])
def test_a_tls_client_that_does_not_choose_h2_is_told_to_go(
    repository: Path, certificates: Certificates, tmp_path: Path, offered: list[str], begins: bytes
) -> None:
    flags = ["--grpc-use-ssl", f"--grpc-server-cert={certificates.cert}", f"--grpc-server-key={certificates.key}"]
    context = ssl.create_default_context(cafile=str(certificates.ours.root))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if offered:
        context.set_alpn_protocols(offered)
    with (
        server(repository, *flags, scratch=tmp_path) as process,
        socket.create_connection(("127.0.0.1", process.grpc), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        kind = client.recv(9)[3:4]  # SETTINGS or GOAWAY
        assert kind == begins


def test_large_tensors_pass_tls_both_ways(repository: Path, certificates: Certificates, tmp_path: Path) -> None:
    flags = ["--grpc-use-ssl", f"--grpc-server-cert={certificates.cert}", f"--grpc-server-key={certificates.key}"]
    values = np.arange(4 << 20, dtype="<f4")
    request = proto.ModelInferRequest(model_name="echo", raw_input_contents=[values.tobytes()])
    request.inputs.add(name="x", datatype="FP32", shape=[1, len(values)])
    options = [("grpc.max_receive_message_length", -1)]
    with (
        server(repository, *flags, scratch=tmp_path) as process,
        grpc.secure_channel(f"127.0.0.1:{process.grpc}", credentials(certificates.ours.root), options) as channel,
    ):
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        answer = proto.ModelInferResponse.FromString(infer(request.SerializeToString(), timeout=60))
        assert answer.raw_output_contents[0] == request.raw_input_contents[0]


def test_mutual_tls_lets_in_clients_whose_certificate_the_authority_signed(
    repository: Path, certificates: Certificates, tmp_path: Path
) -> None:
    flags = [
        "--grpc-use-ssl-mutual",
        f"--grpc-server-cert={certificates.cert}",
        f"--grpc-server-key={certificates.key}",
        f"--grpc-root-cert={certificates.ours.root}",
    ]
    root = certificates.ours.root
    with server(repository, *flags, scratch=tmp_path) as process:
        assert live(process.grpc, credentials(root, certificates.ours.issue("client"))) == YES
        for stranger in (None, certificates.theirs.issue("stranger")):
            with pytest.raises(grpc.RpcError) as caught:
                live(process.grpc, credentials(root, stranger))
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        pytest.param(["--grpc-use-ssl"], "TLS on the gRPC port needs --grpc-server-cert", id="no certificate"),
        pytest.param(["--grpc-server-key={key}"], "no use without --grpc-use-ssl", id="a key without TLS"),
        pytest.param(
            ["--grpc-use-ssl-mutual", "--grpc-server-cert={cert}", "--grpc-server-key={key}"],
            "needs --grpc-root-cert",
            id="mutual without an authority",
        ),
        pytest.param(
            ["--grpc-use-ssl", "--grpc-server-cert={cert}", "--grpc-server-key=/nowhere"],
            "--grpc-server-key /nowhere cannot be read: No such file",
            id="a file that is not there",
        ),
        pytest.param(
            ["--grpc-use-ssl", "--grpc-server-cert={key}", "--grpc-server-key={key}"],
            "are not a certificate in PEM form and its key",
            id="no certificate in the file",
        ),
    ],
)
def test_tls_that_cannot_work_prevents_the_start(
    repository: Path, certificates: Certificates, flags: list[str], sentence: str
) -> None:
    given = [flag.format(cert=certificates.cert, key=certificates.key) for flag in flags]
    done = subprocess.run(command(repository, *given), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


class Counter:
    """Forwards one port to another and counts the bytes that come back."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.returned = 0
        self.connections: list[asyncio.Task[None]] = []

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(asyncio.create_task(self.forward(reader, writer)))

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self._target)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, counts: bool) -> None:
            while content := await source.read(65536):
                self.returned += len(content) if counts else 0
                sink.write(content)
                await sink.drain()
            sink.close()
            await sink.wait_closed()

        await asyncio.gather(pump(reader, forth, counts=False), pump(back, writer, counts=True))


@asynccontextmanager
async def counted(target: int) -> AsyncIterator[tuple[Counter, int]]:
    counter = Counter(target)
    async with await asyncio.start_server(counter.accept, "127.0.0.1", 0) as listener:
        yield counter, listener.sockets[0].getsockname()[1]
        async with asyncio.timeout(20):
            await asyncio.gather(*counter.connections)


async def bytes_back(port: int) -> int:
    """Return how many bytes carry an answer of 1 MiB of zeros."""
    request = proto.ModelInferRequest(model_name="echo")
    request.inputs.add(name="x", datatype="FP32", shape=[1, 1 << 18])
    request.raw_input_contents.append(np.zeros(1 << 18, "<f4").tobytes())
    async with counted(port) as (counter, through):
        async with grpc.aio.insecure_channel(f"127.0.0.1:{through}") as channel:
            infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            answer = proto.ModelInferResponse.FromString(await infer(request.SerializeToString(), timeout=20))
        assert answer.raw_output_contents[0] == request.raw_input_contents[0]
        return counter.returned


async def test_answers_are_compressed_by_the_level_that_is_asked_for(repository: Path, tmp_path: Path) -> None:
    with server(repository, scratch=tmp_path) as process:
        assert await bytes_back(process.grpc) > 1 << 20
    with server(repository, "--grpc-infer-response-compression-level=high", scratch=tmp_path) as process:
        assert await bytes_back(process.grpc) < 1 << 15


@pytest.mark.feature("P17")
@pytest.mark.parametrize("address", ["::1", "[::1]", "ipv6:[::1]"])
def test_the_grpc_port_listens_on_ipv6(repository: Path, tmp_path: Path, address: str) -> None:
    with server(repository, f"--grpc-address={address}", scratch=tmp_path) as process:
        with grpc.insecure_channel(f"[::1]:{process.grpc}") as channel:
            assert channel.unary_unary(LIVE)(b"", timeout=20) == YES
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", process.grpc), timeout=20)


def test_two_servers_share_a_grpc_port_where_both_are_told_to(repository: Path, tmp_path: Path) -> None:
    with server(repository, "--reuse-grpc-port", scratch=tmp_path) as first:
        port = f"--grpc-port={first.grpc}"
        taken = subprocess.run(command(repository, port), capture_output=True, text=True, timeout=60, check=False)
        assert taken.returncode == 1
        assert "choose another port with --grpc-port" in taken.stderr
        with server(repository, "--reuse-grpc-port", port, scratch=tmp_path) as second:
            assert second.grpc == first.grpc
            first.terminate()
            assert first.process.wait(20) == 0
            with grpc.insecure_channel(f"127.0.0.1:{second.grpc}") as channel:
                assert channel.unary_unary(LIVE)(b"", timeout=20) == YES


PING, GOAWAY = 6, 7


class RawConnection:
    """An HTTP/2 connection without calls."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._file = self._socket.makefile("rb")
        self._socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self._send(4, b"")

    def _send(self, kind: int, payload: bytes) -> None:
        self._socket.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, 0]) + bytes(4) + payload)

    def ping(self, times: int) -> None:
        for number in range(times):
            self._send(PING, struct.pack(">Q", number))

    def frames(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield kind, flags and payload until the server ends the connection."""
        while len(head := self._file.read(9)) == 9:
            length, kind, flags = int.from_bytes(head[:3]), head[3], head[4]
            yield kind, flags, self._file.read(length)

    def close(self) -> None:
        self._file.close()
        self._socket.close()


@pytest.fixture
def connect() -> Iterator[Any]:
    made: list[RawConnection] = []

    def make(port: int) -> RawConnection:
        made.append(RawConnection(port))
        return made[-1]

    yield make
    for connection in made:
        connection.close()


def test_an_old_connection_is_told_to_go_and_then_ended(repository: Path, tmp_path: Path, connect: Any) -> None:
    flags = ["--grpc-max-connection-age=200", "--grpc-max-connection-age-grace=200"]
    with server(repository, *flags, scratch=tmp_path) as process:
        kinds = [kind for kind, _, _ in connect(process.grpc).frames()]
        assert GOAWAY in kinds


def test_a_client_that_does_not_answer_pings_is_given_up(repository: Path, tmp_path: Path, connect: Any) -> None:
    flags = [
        "--grpc-keepalive-time=1000",
        "--grpc-keepalive-timeout=300",
        "--grpc-keepalive-permit-without-calls=true",
        "--grpc-http2-max-pings-without-data=0",
    ]
    with server(repository, *flags, scratch=tmp_path) as process:
        kinds = [kind for kind, flags, _ in connect(process.grpc).frames() if flags == 0]
        assert PING in kinds


def test_a_client_that_pings_too_often_is_ended_after_its_strikes(
    repository: Path, tmp_path: Path, connect: Any
) -> None:
    with server(repository, scratch=tmp_path) as process:
        connection = connect(process.grpc)
        connection.ping(10)
        (farewell,) = [payload for kind, _, payload in connection.frames() if kind == GOAWAY]
        assert b"too_many_pings" in farewell
    with server(repository, "--grpc-http2-max-ping-strikes=0", scratch=tmp_path) as process:
        connection = connect(process.grpc)
        connection.ping(10)
        answers = (payload for kind, flags, payload in connection.frames() if kind == PING and flags == 1)
        assert [int.from_bytes(next(answers)) for _ in range(10)] == list(range(10))


def test_the_server_of_earlier_releases_is_accepted_with_a_warning(repository: Path, tmp_path: Path) -> None:
    with server(repository, "--grpc-server=grpcio", scratch=tmp_path) as process:
        with grpc.insecure_channel(f"127.0.0.1:{process.grpc}") as channel:
            live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")(b"", timeout=20)
        process.terminate()
        said, _ = process.process.communicate(timeout=20)
    assert live == b"\x08\x01"
    assert "--grpc-server=grpcio has no effect: gRPC is served by h2; leave it out" in said
