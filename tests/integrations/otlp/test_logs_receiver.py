"""The receiver of exported logs, with a real gRPC client that sends what Envoy sends, and what it never would."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc
import pytest
from google.protobuf import descriptor_pb2
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs

from integrations import otlp
from integrations.otlp.logs_receiver import METHOD, MOST_BYTES, MOST_RECORDS, LogsReceiver, Records
from tests.cluster._support.certificates import Authority

TOKEN = "t" * 32
BEARER = (("authorization", f"Bearer {TOKEN}"),)


class Server:
    """A receiver on a free port, and what it took."""

    def __init__(self) -> None:
        self.taken: list[dict[str, str]] = []
        self.receiver = LogsReceiver(("127.0.0.1", 0), TOKEN, self._take)
        self.receiver.start()
        self.channel = grpc.insecure_channel(
            f"127.0.0.1:{self.receiver.port}", options=[("grpc.max_send_message_length", -1)]
        )

    def _take(self, records: Records) -> None:
        self.taken += map(dict, records)

    def send(
        self, message: bytes, metadata: Sequence[tuple[str, str | bytes]] = BEARER, *, method: str = METHOD
    ) -> grpc.StatusCode:
        try:
            self.channel.unary_unary(method)(message, metadata=metadata, timeout=20)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
        return grpc.StatusCode.OK


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.channel.close()
    running.receiver.close()


def export(*records: dict[str, str]) -> bytes:
    """Return the message of OpenTelemetry's own library."""
    made = [
        LogRecord(attributes=[KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in each.items()])
        for each in records
    ]
    logs = ResourceLogs(scope_logs=[ScopeLogs(log_records=made)])
    return ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()


def test_attributes_of_all_records_are_taken(server: Server) -> None:
    records = [{"key": "ci", "status": "200"}, {"path": "/\N{SNOWMAN}"}]
    assert server.send(export(*records)) is grpc.StatusCode.OK
    assert server.send(export(*records[:1]) + export(*records[1:])) is grpc.StatusCode.OK  # two resources
    assert server.taken == records * 2
    assert server.send(b"") is grpc.StatusCode.OK


def test_a_text_that_is_no_utf_8_spoils_no_other_record(server: Server) -> None:
    message = export({"rows": "AAAA"}, {"key": "ci"}).replace(b"AAAA", b"\xc3\xff\xfeA")
    assert server.send(message) is grpc.StatusCode.OK
    assert server.taken == [{"rows": "\N{REPLACEMENT CHARACTER}" * 3 + "A"}, {"key": "ci"}]


def test_attributes_that_are_no_texts_are_empty(server: Server) -> None:
    record = LogRecord(attributes=[KeyValue(key="status", value=AnyValue(int_value=200)), KeyValue(key="key")])
    logs = ResourceLogs(scope_logs=[ScopeLogs(log_records=[record])])
    assert server.send(ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()) is grpc.StatusCode.OK
    assert server.taken == [{"status": "", "key": ""}]


@pytest.mark.parametrize(
    "metadata",
    [
        (), (("authorization", TOKEN),), (("authorization", f"Bearer {TOKEN[:-1]}"),), (("authorization", "Bearer "),),
        (("authorization", f"bearer {TOKEN}"),), (("authorization-bin", f"Bearer {TOKEN}".encode()),),
    ],
)  # fmt: skip
def test_callers_without_the_token_are_refused(server: Server, metadata: Sequence[tuple[str, str | bytes]]) -> None:
    assert server.send(export({"key": "ci"}), metadata) is grpc.StatusCode.UNAUTHENTICATED
    assert server.send(b"nothing", metadata) is grpc.StatusCode.UNAUTHENTICATED
    assert server.taken == []


def test_what_is_no_export_is_refused_and_the_next_one_is_taken(server: Server) -> None:
    assert server.send(b"\xff" * 100) is grpc.StatusCode.INVALID_ARGUMENT
    assert server.send(export({"key": "ci"})[:-1]) is grpc.StatusCode.INVALID_ARGUMENT
    assert server.send(export(), method="/a.B/C") is grpc.StatusCode.UNIMPLEMENTED
    assert server.send(export({"key": "ci"})) is grpc.StatusCode.OK
    assert server.taken == [{"key": "ci"}]


def test_messages_and_their_records_are_bounded(server: Server) -> None:
    assert server.send(export({"path": "x" * MOST_BYTES})) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert server.send(export(*[{}] * (MOST_RECORDS + 1))) is grpc.StatusCode.INVALID_ARGUMENT
    assert server.taken == []
    assert server.send(export(*[{}] * MOST_RECORDS)) is grpc.StatusCode.OK


def test_an_address_in_use_is_one_sentence(server: Server) -> None:
    with pytest.raises(OSError, match="cannot be listened on: it is in use"):
        LogsReceiver(("127.0.0.1", server.receiver.port), TOKEN, lambda _: None)


def test_with_a_certificate_it_speaks_tls_alone_and_takes_up_a_renewed_one(tmp_path: Path) -> None:
    authorities = [Authority(tmp_path, name) for name in ("first", "second")]
    folder, taken = tmp_path / "tls", []
    folder.mkdir()

    def serve_by(authority: Authority) -> None:
        pair = authority.issue("collector", addresses=["127.0.0.1"])
        for path, name in ((pair.certificate, "tls.crt"), (pair.key, "tls.key")):
            (folder / name).write_bytes(path.read_bytes())

    def sent(credentials: grpc.ChannelCredentials | None) -> bool:
        place = f"127.0.0.1:{receiver.port}"
        channel = grpc.secure_channel(place, credentials) if credentials else grpc.insecure_channel(place)
        with channel:
            try:
                channel.unary_unary(METHOD)(export({"key": "ci"}), metadata=BEARER, timeout=5)
            except grpc.RpcError:
                return False
            return True

    first, second = (grpc.ssl_channel_credentials(each.certificate.read_bytes()) for each in authorities)
    serve_by(authorities[0])
    receiver = LogsReceiver(("127.0.0.1", 0), TOKEN, taken.extend, folder)
    receiver.start()
    try:
        assert (sent(first), sent(second), sent(None)) == (True, False, False)
        serve_by(authorities[1])
        assert (sent(first), sent(second)) == (False, True)
        (folder / "tls.key").unlink()
        assert sent(second), "the pair of before"
    finally:
        receiver.close()
    assert taken == [{"key": "ci"}] * 3


def test_a_missing_or_wrong_certificate_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"tls\.key"):
        LogsReceiver(("127.0.0.1", 0), TOKEN, lambda _: None, tmp_path)
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_text("no PEM")
    with pytest.raises(OSError, match="has no certificate with its key"):
        LogsReceiver(("127.0.0.1", 0), TOKEN, lambda _: None, tmp_path)


def test_the_descriptors_are_those_of_the_proto_file(tmp_path: Path) -> None:
    folder, generated = Path(otlp.__file__).parent, tmp_path / "descriptors.binpb"
    names = [path.name for path in folder.glob("*.proto")]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"--descriptor_set_out={generated}", *names]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    kept = descriptor_pb2.FileDescriptorSet.FromString((folder / "generated" / "descriptors.binpb").read_bytes())
    assert descriptor_pb2.FileDescriptorSet.FromString(generated.read_bytes()) == kept
