"""External authorization server (Envoy's ext_authz) over gRPC."""

import logging

import grpc

from integrations.clusters.kubernetes.waker.calls import METHOD, read
from integrations.clusters.kubernetes.waker.waker import Waker

logger = logging.getLogger(__name__)
_MOST_BYTES = 256 << 10
"""Of one message: headers that Envoy accepts, 60 KiB by default, and what it adds."""
_MOST_CALLS = 4096


class WakeServer:
    """Serves Envoy's calls from its start until it is stopped.

    Attributes:
        port: where it listens.

    Raises:
        OSError: the address is in use, or not of this machine.
    """

    def __init__(self, address: tuple[str, int], waker: Waker) -> None:
        self._server = grpc.aio.server(
            handlers=[_Calls(waker)],
            options=[("grpc.max_receive_message_length", _MOST_BYTES), ("grpc.so_reuseport", 0)],
            maximum_concurrent_rpcs=_MOST_CALLS,
        )
        host, port = address
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            self.port = self._server.add_insecure_port(place)
        except RuntimeError as error:
            raise OSError(f"{place} cannot be listened on: it is in use, or no address of this machine") from error

    async def start(self) -> None:
        """Serve calls from now on."""
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """Take no more calls, and end those that still wait after `grace_s`: Envoy lets their requests go on."""
        await self._server.stop(grace_s)


class _Calls(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs alone
    def __init__(self, waker: Waker) -> None:
        self._handler = grpc.unary_unary_rpc_method_handler(self._check)
        self._waker = waker

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        return self._handler if handler_call_details.method == METHOD else None

    async def _check(self, message: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
        try:
            call = read(message)
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return await self._waker.answer(call)
