"""OTLP logs receiver: the gRPC service of OpenTelemetry's protocol that Envoys export access logs to.

A call without the token is refused before its message is read. An answer says that records were taken, not that they
are stored: Envoy sends nothing a second time.
"""

import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

METHOD = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
MOST_BYTES = 4 << 20
"""Of one message; Envoy sends 16 KiB and one record at most."""
MOST_RECORDS = 10_000
"""Of one message."""
_MOST_CALLS = 16
_THREADS = 2

Records = Sequence[Mapping[str, str]]


class LogsReceiver:
    """Serves exports of logs from its start until it is closed.

    Args:
        token: what callers have to send as `authorization: Bearer <token>`.
        take: gets the attributes of the records of a message, those that are texts.
        tls: a folder with `tls.crt` and `tls.key`, which may be renewed; None for plain text.

    Attributes:
        port: where it listens.

    Raises:
        OSError: the address is in use, or not of this machine; a file of `tls` is missing, or not what it should be.
    """

    def __init__(
        self, address: tuple[str, int], token: str, take: Callable[[Records], None], tls: Path | None = None
    ) -> None:
        self._server = grpc.server(
            ThreadPoolExecutor(_THREADS, "otlp"),
            handlers=[_Logs(token, take)],
            options=[("grpc.max_receive_message_length", MOST_BYTES), ("grpc.so_reuseport", 0)],
            maximum_concurrent_rpcs=_MOST_CALLS,
        )
        host, port = address
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if tls is None:
                self.port = self._server.add_insecure_port(place)
            else:
                self.port = self._server.add_secure_port(place, _credentials(tls))
        except RuntimeError as error:
            files = "" if tls is None else f", or {tls} has no certificate with its key"
            raise OSError(
                f"{place} cannot be listened on: it is in use, or not an address of this machine{files}"
            ) from error

    def start(self) -> None:
        """Serve calls from now on."""
        self._server.start()

    def close(self, grace_s: float = 2.0) -> None:
        """Take no more calls, and wait for those under way."""
        self._server.stop(grace_s).wait()


class _Logs(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs alone
    def __init__(self, token: str, take: Callable[[Records], None]) -> None:
        self._expected, self._take = f"Bearer {token}".encode(), take

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        if handler_call_details.method != METHOD:
            return None
        sent = dict(handler_call_details.invocation_metadata or ()).get("authorization", "")
        known = hmac.compare_digest(sent if isinstance(sent, bytes) else sent.encode(), self._expected)
        return grpc.unary_unary_rpc_method_handler(self._export if known else _refuse)

    def _export(self, message: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            found = list(_records(message))
        except DecodeError:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the message is not an ExportLogsServiceRequest")
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        self._take(found)
        return b""


def _credentials(folder: Path) -> grpc.ServerCredentials:
    """Return what reads its files with each connection; those of before stay where they cannot be read."""

    def present() -> Any:
        pair = (folder / "tls.key").read_bytes(), (folder / "tls.crt").read_bytes()
        return grpc.ssl_server_certificate_configuration([pair])

    return grpc.dynamic_ssl_server_credentials(present(), present)


def _refuse(_message: bytes, context: grpc.ServicerContext) -> bytes:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "send the collector's token as `authorization: Bearer <token>`")


def _records(message: bytes) -> Iterator[dict[str, str]]:
    """Yield the attributes of each record; raises DecodeError, and ValueError for too many."""
    scopes = [scope for resource in _request().FromString(message).resource_logs for scope in resource.scope_logs]
    if (count := sum(len(scope.log_records) for scope in scopes)) > MOST_RECORDS:
        raise ValueError(f"the message has {count} records; send at most {MOST_RECORDS}")
    for scope in scopes:
        for record in scope.log_records:
            yield {_text(each.key): _text(each.value.string_value) for each in record.attributes}


def _text(found: bytes) -> str:
    return found.decode("utf-8", "replace")


@cache
def _request() -> Any:
    """Return the class of requests, made from descriptors that a test regenerates from the .proto file beside it."""
    pool = descriptor_pool.DescriptorPool()
    content = (Path(__file__).parent / "generated" / "descriptors.binpb").read_bytes()
    for file in descriptor_pb2.FileDescriptorSet.FromString(content).file:
        pool.AddSerializedFile(file.SerializeToString())
    name = "opentelemetry.proto.collector.logs.v1.ExportLogsServiceRequest"
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
