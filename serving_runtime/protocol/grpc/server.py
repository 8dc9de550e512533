"""grpcio's asyncio server around the services. Only this module and handlers.py import grpc."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from serving_runtime.protocol.grpc.handlers import CallPolicy, handlers
from serving_runtime.protocol.grpc.methods import Service

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GrpcLimits:
    """Limits of the gRPC server.

    Attributes:
        max_message_bytes: of one request or answer.
    """

    max_message_bytes: int = 64 * 1024 * 1024


class GrpcServer:
    """Services on one port."""

    def __init__(self, services: Sequence[Service], limits: GrpcLimits, policy: CallPolicy) -> None:
        self._services = services
        self._server = grpc.aio.server(options=_options(limits))
        self._server.add_generic_rpc_handlers([handlers(service, policy) for service in services])

    def bind(self, address: str, port: int) -> int:
        """Return the port bound, a free one for port 0; raises OSError when it is taken."""
        host = f"[{address}]" if ":" in address else address
        try:
            bound = self._server.add_insecure_port(f"{host}:{port}")
        except RuntimeError as error:
            raise OSError(f"cannot listen on {host}:{port}: {error}") from error
        if not bound:
            raise OSError(f"cannot listen on {host}:{port}")
        return int(bound)

    async def start(self) -> None:
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """Stop accepting, tell clients to go, and return when the calls in flight are done or the grace is over."""
        stopped = asyncio.ensure_future(self._server.stop(grace_s))
        await asyncio.sleep(0)  # no new calls from here on
        for service in self._services:
            service.drain()
        await stopped


def _options(limits: GrpcLimits) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", 0),  # a taken port must be an error, not a second server behind it
        ("grpc.max_receive_message_length", limits.max_message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", 64 * 1024),
        # Triton's defaults: ping after two hours, bear clients that ping every five minutes and without calls.
        ("grpc.keepalive_time_ms", 7_200_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 0),
        ("grpc.http2.max_pings_without_data", 2),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 300_000),
        ("grpc.http2.max_ping_strikes", 2),
    ]
