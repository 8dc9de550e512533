"""gRPC server on grpcio's asyncio server."""

import asyncio
import logging
import os
import socket
from collections.abc import Sequence

import grpc

from serving_runtime.protocol import tls
from serving_runtime.protocol.grpc.methods import Service
from serving_runtime.protocol.grpc.on_grpcio.handlers import handlers
from serving_runtime.protocol.grpc.policy import CallPolicy
from serving_runtime.protocol.grpc.settings import COMPRESSION_LEVELS, GrpcSettings
from serving_runtime.protocol.tls import TlsFiles

logger = logging.getLogger(__name__)


class GrpcioServer:
    """Services on one socket."""

    def __init__(self, services: Sequence[Service], settings: GrpcSettings, policy: CallPolicy) -> None:
        """Take the services; raises ValueError, naming the flag, for unusable certificates."""
        self._services = services
        self._credentials = _credentials(settings.tls) if settings.tls is not None else None
        self._server = grpc.aio.server(options=_options(settings))
        self._server.add_generic_rpc_handlers([handlers(service, policy) for service in services])

    def bind(self, address: str, port: int) -> int:
        """Return the port bound, a free one for port 0; raises OSError when it is taken."""
        host = f"[{address}]" if ":" in address else address
        return self._add(f"{host}:{port}")

    def take(self, sock: socket.socket) -> None:
        """Replace a bound Unix socket by one that grpcio makes; raises OSError where it cannot."""
        path = sock.getsockname()
        sock.close()
        mask = os.umask(0o177)  # grpcio listens as soon as it has bound
        try:
            self._add(f"unix:{path}")  # which replaces the file
        finally:
            os.umask(mask)

    def _add(self, place: str) -> int:
        try:
            if self._credentials is None:
                bound = self._server.add_insecure_port(place)
            else:
                bound = self._server.add_secure_port(place, self._credentials)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {place}: {error}") from error
        if not bound:
            raise OSError(f"cannot listen on {place}")
        return int(bound)

    async def start(self) -> None:
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """Stop accepting, send GOAWAY, and return when the calls in flight are done or the grace is over."""
        stopped = asyncio.ensure_future(self._server.stop(grace_s))
        await asyncio.sleep(0)  # no new calls from here on
        for service in self._services:
            service.drain()
        await stopped


def _credentials(files: TlsFiles) -> grpc.ServerCredentials:
    tls.context(files, ("h2",))  # grpcio would report only a failed port
    roots = files.root_cert.read_bytes() if files.root_cert is not None else None
    pair = (files.server_key.read_bytes(), files.server_cert.read_bytes())
    return grpc.ssl_server_credentials([pair], roots, files.mutual)


def _options(settings: GrpcSettings) -> list[tuple[str, int]]:
    options = [
        ("grpc.so_reuseport", int(settings.reuse_port)),  # else a taken port must be an error, not a second server
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", 64 * 1024),
        ("grpc.default_compression_level", COMPRESSION_LEVELS.index(settings.compression_level)),
        ("grpc.keepalive_time_ms", settings.keepalive_time_ms),
        ("grpc.keepalive_timeout_ms", settings.keepalive_timeout_ms),
        ("grpc.http2.ping_timeout_ms", settings.keepalive_timeout_ms),  # else a minute, whatever the line above says
        ("grpc.keepalive_permit_without_calls", int(settings.keepalive_permit_without_calls)),
        ("grpc.http2.max_pings_without_data", settings.max_pings_without_data),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", settings.min_recv_ping_interval_ms),
        ("grpc.http2.max_ping_strikes", settings.max_ping_strikes),
    ]
    for name, limit_ms in (
        ("grpc.max_connection_age_ms", settings.max_connection_age_ms),
        ("grpc.max_connection_age_grace_ms", settings.max_connection_age_grace_ms),
    ):
        if limit_ms is not None:
            options.append((name, limit_ms))
    return options
