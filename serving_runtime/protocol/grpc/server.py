"""grpcio's asyncio server around V2Service. This module is the seam: nothing else imports grpc."""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc

from serving_runtime import proto
from serving_runtime.errors import ServingError
from serving_runtime.protocol.grpc.service import HEALTH, Method, V2Service
from serving_runtime.telemetry import request_log

Answer: TypeAlias = Callable[[Any, grpc.aio.ServicerContext[Any, Any]], Awaitable[Any]]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GrpcLimits:
    """Limits of the gRPC server.

    Attributes:
        max_message_bytes: of one request or answer.
    """

    max_message_bytes: int = 64 * 1024 * 1024


class GrpcServer:
    """The V2 service on one port."""

    def __init__(self, service: V2Service, limits: GrpcLimits, *, logs: bool = False) -> None:
        """Args: logs: write a line for every call but health checks (`telemetry.request_log`)."""
        self._server = grpc.aio.server(options=_options(limits))
        self._server.add_generic_rpc_handlers(_handlers(service, logs=logs))

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
        await self._server.stop(grace_s)


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


def _handlers(service: V2Service, *, logs: bool) -> list[Any]:
    """Return grpcio's handlers of the methods there are; grpcio answers UNIMPLEMENTED for all others."""
    return [
        grpc.method_handlers_generic_handler(
            name,
            {
                method: _handler(
                    _logged(method, _answer(call)) if logs and name != HEALTH else _answer(call),
                    proto.request_type(name, method),
                )
                for method, call in methods.items()
            },
        )
        for name, methods in service.methods.items()
    ]


def _answer(method: Method) -> Answer:
    async def answer(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        try:
            return await method(request)
        except ServingError as error:
            await context.abort(grpc.StatusCode[error.grpc_code], error.message)

    return answer


def _logged(name: str, answer: Answer) -> Answer:
    async def noted(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        began_ns = time.perf_counter_ns()
        sent = dict(context.invocation_metadata() or ())
        status = "GONE"
        try:
            response = await answer(request, context)
            status = "OK"
        except grpc.aio.AbortError:
            status = context.code().name
            raise
        finally:
            model = getattr(request, "model_name", None) or getattr(request, "name", "")
            request_log.note(str(sent.get(request_log.HEADER, "")), str(model), name, status, began_ns)
        return response

    return noted


def _handler(answer: Answer, request_type: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        answer, request_deserializer=request_type.FromString, response_serializer=_serialized
    )


def _serialized(message: Any) -> bytes:
    content: bytes = message.SerializeToString()
    return content
