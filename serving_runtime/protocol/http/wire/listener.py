"""HTTP listener: a listening socket, its connections, and their end."""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from typing import Any

from serving_runtime.protocol import tls
from serving_runtime.protocol.caller_limit import UnansweredRequests
from serving_runtime.protocol.http.wire.connection import Connection
from serving_runtime.protocol.http.wire.limits import DISCARD_EVERY_S, HttpLimits
from serving_runtime.protocol.http.wire.message import STATUS_LINES, Application
from serving_runtime.protocol.http.wire.reader import KeepsHeader
from serving_runtime.protocol.request_memory import RequestMemory
from serving_runtime.protocol.turns import ReadTurns

_QUIET_S = 0.25
"""Idle time of a kept-alive connection before a drain closes it: a request may be on its way."""

_SWEEP_S = 1.0
_DRAIN_SWEEP_S = 0.05


class Listener:
    """Serves one application on one socket.

    Attributes:
        memory: memory of unfinished requests, of all listeners that share it.
        unanswered: requests of callers with a limit, of all listeners that share it.
        turns: read turns of connections that send much.
        keeps_header: selects the headers that requests carry to the application, None for none.
        begun: beginnings of answers, by status: the status line, and headers of all answers.
        now: the loop's time, updated once a second: precise enough for timeouts, and free for requests.
        draining: answers request clients to close.

    Args:
        secured: TLS context; None for plain text.
    """

    def __init__(
        self,
        application: Application,
        sock: socket.socket,
        limits: HttpLimits,
        keeps_header: KeepsHeader | None = None,
        *,
        own_headers: bytes = b"",
        memory: RequestMemory | None = None,
        unanswered: UnansweredRequests | None = None,
        secured: ssl.SSLContext | None = None,
    ) -> None:
        self.application = application
        self.limits = limits
        self.memory = memory if memory is not None else RequestMemory()
        self.unanswered = unanswered if unanswered is not None else UnansweredRequests()
        self.turns = ReadTurns()
        self.keeps_header = keeps_header
        self.begun: Mapping[int, bytes] = {status: line + own_headers for status, line in STATUS_LINES.items()}
        self.draining = False
        self._loop = asyncio.get_running_loop()
        self.now = self._discard_at = self._loop.time()
        self._socket = sock
        self._secured = secured
        self._connections: set[Connection] = set()
        self._server: asyncio.AbstractServer | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        unix = self._socket.family == socket.AF_UNIX
        create = self._loop.create_unix_server if unix else self._loop.create_server
        tls_limits: Any = {}
        if self._secured is not None:
            tls_limits = {"ssl_handshake_timeout": tls.HANDSHAKE_S, "ssl_shutdown_timeout": tls.SHUTDOWN_S}
        self._server = await create(
            lambda: Connection(self), sock=self._socket, backlog=4096, ssl=self._secured, **tls_limits
        )
        self._sweep()

    def change(self, application: Application, keeps_header: KeepsHeader | None) -> None:
        """Answer requests that have not begun yet by another application."""
        self.application, self.keeps_header = application, keeps_header
        for connection in self._connections:
            connection.serve(application, keeps_header)

    def discard_delay_s(self) -> float:
        """Return how long a connection waits before its next discarding read; all of them take turns."""
        now = self._loop.time()
        self._discard_at = max(now, self._discard_at) + DISCARD_EVERY_S
        return self._discard_at - now

    def add(self, connection: Connection) -> None:
        self._connections.add(connection)

    def remove(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def stop_accepting(self) -> None:
        """Close the listening socket and begin to end idle connections."""
        self.draining = True
        if self._server is not None:
            self._server.close()

    @property
    def busy(self) -> bool:
        """Return whether a request is being read or answered on any connection."""
        return any(connection.busy for connection in self._connections)

    async def drained(self) -> None:
        """Return once every connection has ended."""
        while self._connections:
            self.now = self._loop.time()
            for connection in tuple(self._connections):
                connection.close_if_idle(self.now, _QUIET_S)
            await asyncio.sleep(_DRAIN_SWEEP_S)

    def abort(self) -> None:
        """End all remaining connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in tuple(self._connections):
            connection.abort()

    def _sweep(self) -> None:
        self.now = self._loop.time()
        for connection in tuple(self._connections):
            connection.sweep(self.now)
        self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep)
