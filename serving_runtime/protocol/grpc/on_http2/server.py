"""gRPC server on our own HTTP/2, on one socket."""

import asyncio
import socket
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from serving_runtime.common.errors import ServingError
from serving_runtime.protocol import tls
from serving_runtime.protocol.caller_limit import TooManyRequests, UnansweredRequests
from serving_runtime.protocol.grpc.methods import Service
from serving_runtime.protocol.grpc.on_http2 import heads
from serving_runtime.protocol.grpc.on_http2.calls import CallSettings, RefusedCall
from serving_runtime.protocol.grpc.on_http2.lifetime import Lifetime
from serving_runtime.protocol.grpc.on_http2.statuses import Beginnings
from serving_runtime.protocol.grpc.on_http2.streaming import StreamCall
from serving_runtime.protocol.grpc.on_http2.unary import UnaryCall
from serving_runtime.protocol.grpc.policy import CallPolicy, governed, streaming, unary
from serving_runtime.protocol.grpc.settings import COMPRESSION_LEVELS, GrpcSettings
from serving_runtime.protocol.http2.connection import Connection
from serving_runtime.protocol.http2.headers.fields import Fields
from serving_runtime.protocol.http2.limits import MAX_STREAMS
from serving_runtime.protocol.http2.stream import Stream
from serving_runtime.protocol.request_memory import RequestMemory
from serving_runtime.protocol.turns import ReadTurns

_ZLIB_LEVELS = dict(zip(COMPRESSION_LEVELS, (0, 1, 6, 9), strict=True))
_BACKLOG = 4096
_SWEEP_S = 1.0


Scope: TypeAlias = Callable[[Fields], Service | None]
"""Returns the service that a request's headers choose, None for those of the server; raises ServingError."""


class Http2GrpcServer:
    """Services on one socket; the host of its connections.

    Args:
        scope: chooses services by headers; None where all requests have the same.
    """

    def __init__(
        self,
        services: Sequence[Service],
        settings: GrpcSettings,
        policy: CallPolicy,
        memory: RequestMemory | None = None,
        unanswered: UnansweredRequests | None = None,
        *,
        scope: Scope | None = None,
    ) -> None:
        """Take the services; raises ValueError, naming the flag, for unusable certificates."""
        self._services = services
        self._settings = settings
        self._tls = tls.context(settings.tls, ("h2",)) if settings.tls is not None else None
        self._loop = asyncio.get_running_loop()
        self._calls = CallSettings(
            self._loop,
            Beginnings(policy.answer_metadata),
            policy.watches,
            settings.max_message_bytes,
            _ZLIB_LEVELS[settings.compression_level],
            memory if memory is not None else RequestMemory(),
        )
        self._endpoints = {
            f"/{service.name}/{name}".encode(): endpoint
            for service in services
            for name, endpoint in _endpoints(service, policy).items()
        }
        self._policy = policy
        self._scope = scope
        self._scoped: weakref.WeakKeyDictionary[Service, dict[bytes, heads.Endpoint]] = weakref.WeakKeyDictionary()
        self._unanswered = unanswered if unanswered is not None else UnansweredRequests()
        self.max_streams = MAX_STREAMS
        self.turns = ReadTurns()
        self._connections: dict[Connection, Lifetime] = {}
        self._draining = False
        self._emptied = asyncio.Event()
        self._sweeper: asyncio.TimerHandle | None = None
        self._socket: socket.socket
        self._server: asyncio.AbstractServer | None = None

    def take(self, sock: socket.socket) -> None:
        """Take the bound socket to listen on, of TCP or Unix."""
        self._socket = sock

    async def start(self) -> None:
        """Listen; raises OSError when another process has taken the port since it was bound."""
        unix = self._socket.family == socket.AF_UNIX
        create = self._loop.create_unix_server if unix else self._loop.create_server
        self._server = await create(lambda: Connection(self), sock=self._socket, backlog=_BACKLOG, ssl=self._tls)
        self._sweep()

    def _sweep(self) -> None:
        now = self._loop.time()
        for connection in tuple(self._connections):
            connection.sweep(now)
        self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep)

    async def stop(self, grace_s: float) -> None:
        """Stop accepting, send GOAWAY, and return when the calls in flight are done or the grace is over."""
        if self._server is not None:
            self._server.close()
        self._draining = True
        for connection in tuple(self._connections):
            connection.drain()
        for service in self._services:
            service.drain()
        try:
            async with asyncio.timeout(grace_s):
                while self._connections:
                    self._emptied.clear()
                    await self._emptied.wait()
        except TimeoutError:
            for connection in tuple(self._connections):
                connection.abort()
        finally:
            if self._sweeper is not None:
                self._sweeper.cancel()

    # Host of the connections

    def interpret(self, fields: Fields, known: heads.Head | None) -> heads.Head:
        if known is not None:
            return known.of(fields)
        return heads.interpret(fields, self._endpoints) if self._scope is None else self._interpret(self._scope, fields)

    def _interpret(self, scope: Scope, fields: Fields) -> heads.Head:
        """Parse the headers of a request whose service depends on them."""
        try:
            service = scope(fields)
        except ServingError as error:
            return heads.Head(error=error)
        if service is None:
            return heads.interpret(fields, self._endpoints)
        endpoints = self._scoped.get(service)
        if endpoints is None:
            found = _endpoints(service, self._policy)
            endpoints = {f"/{service.name}/{name}".encode(): endpoint for name, endpoint in found.items()}
            self._scoped[service] = endpoints
        return heads.interpret(fields, endpoints)

    def stream(self, connection: Connection, stream_id: int, head: heads.Head) -> Stream:
        endpoint = head.endpoint
        if endpoint is None:
            return RefusedCall(connection, stream_id, head, self._calls)
        if head.caller_limit:
            caller = head.caller or connection.peer
            try:
                self._unanswered.enter(caller, head.caller_limit)
            except TooManyRequests as error:
                return RefusedCall(connection, stream_id, heads.Head(error=error), self._calls)
            connection.on_closed[stream_id] = partial(self._unanswered.leave, caller)
        kind = StreamCall if endpoint.streams else UnaryCall
        return kind(connection, stream_id, head, endpoint, self._calls)

    def bears_ping(self, connection: Connection) -> bool:
        return self._connections[connection].bears_ping()

    def add(self, connection: Connection) -> None:
        self._connections[connection] = Lifetime(connection, self._settings, self._loop)
        if self._draining:
            connection.drain()

    def remove(self, connection: Connection) -> None:
        lifetime = self._connections.pop(connection, None)
        if lifetime is not None:
            lifetime.end()
        self._emptied.set()


def _endpoints(service: Service, policy: CallPolicy) -> dict[str, heads.Endpoint]:
    found: dict[str, heads.Endpoint] = {}
    for name, method in service.methods.items():
        direct: Any = None if policy.governs(name) else service.direct.get(name)
        found[name] = heads.endpoint(service.name, name, governed(name, unary(method), policy), direct, streams=False)
    for name, stream in service.streams.items():
        found[name] = heads.endpoint(service.name, name, governed(name, streaming(stream), policy), None, streams=True)
    return found
