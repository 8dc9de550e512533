"""A listening socket of the proxy, its connections, and their end."""

import asyncio
import socket

from serving_runtime.proxy.client_connection import Application, ClientConnection
from serving_runtime.proxy.options import ProxyOptions

_QUIET_S = 0.25
"""Idle time of a kept-alive connection before a drain closes it: a request may be on its way."""

_SWEEP_S = 1.0
_DRAIN_SWEEP_S = 0.05


class ProxyListener:
    """Serves one application on one socket."""

    def __init__(
        self, application: Application, sock: socket.socket, options: ProxyOptions, own_headers: bytes = b""
    ) -> None:
        self.application = application
        self.own_headers = own_headers
        self.max_body_bytes = options.max_input_bytes
        self.idle_s = options.limits.idle_s
        self.linger_s = options.limits.linger_s
        self.draining = False
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time()
        self._socket = sock
        self._connections: set[ClientConnection] = set()
        self._server: asyncio.AbstractServer | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Listen; raises OSError where another process has taken the address since it was bound."""
        unix = self._socket.family == socket.AF_UNIX
        create = self._loop.create_unix_server if unix else self._loop.create_server
        self._server = await create(lambda: ClientConnection(self), sock=self._socket, backlog=4096)
        self._sweep()

    def add(self, connection: ClientConnection) -> None:
        self._connections.add(connection)

    def remove(self, connection: ClientConnection) -> None:
        self._connections.discard(connection)

    @property
    def busy(self) -> int:
        """Return how many connections have a request that is arriving or being answered."""
        return sum(connection.busy for connection in self._connections)

    async def drain(self) -> None:
        """Accept no more connections, and return once all have ended."""
        self.draining = True
        if self._server is not None:
            self._server.close()
        while self._connections:
            self.now = self._loop.time()
            for connection in tuple(self._connections):
                connection.close_if_idle(self.now, _QUIET_S)
            await asyncio.sleep(_DRAIN_SWEEP_S)

    def abort(self) -> None:
        """End the listener and all its connections."""
        if self._server is not None:
            self._server.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in tuple(self._connections):
            connection.abort()

    def _sweep(self) -> None:
        self.now = self._loop.time()
        for connection in tuple(self._connections):
            connection.sweep(self.now)
        self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep)
