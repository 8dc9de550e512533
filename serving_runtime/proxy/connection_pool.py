"""Connections to a container, kept alive between requests; unused ones are closed after a moment."""

import asyncio

from serving_runtime.proxy.container_connection import ContainerConnection
from serving_runtime.proxy.options import ProxyLimits, Target

HOST = "127.0.0.1"
_MAX_UNUSED = 256


class Unreachable(Exception):  # noqa: N818 - as the others in errors.py
    """The container accepts no connection; the message says why."""


class ConnectionPool:
    """Connections of one container, or of one program in its stead.

    Attributes:
        name: the container's, in messages.
        is_runtime: whether it is the platform's own runtime.
    """

    def __init__(self, target: Target, limits: ProxyLimits) -> None:
        self.name = target.name
        self.is_runtime = target.is_runtime
        self._port = target.port
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._unused: list[ContainerConnection] = []
        self._every: set[ContainerConnection] = set()

    def unused(self) -> ContainerConnection | None:
        """Return a connection that is open and not in use; None without one."""
        oldest = self._loop.time() - self._limits.kept_idle_s
        while self._unused:
            found = self._unused.pop()  # the one used last
            if found.usable and found.free_since >= oldest:
                return found
            found.drop()
        return None

    async def connect(self) -> ContainerConnection:
        """Return a new connection; raises Unreachable."""
        at = f"{self.name} does not accept connections on {HOST}:{self._port}"
        try:
            async with asyncio.timeout(self._limits.connect_s):
                _, connection = await self._loop.create_connection(lambda: ContainerConnection(self), HOST, self._port)
        except TimeoutError:
            raise Unreachable(f"{at}: no answer in {self._limits.connect_s:g} s") from None
        except OSError as error:
            raise Unreachable(f"{at}: {error.strerror or error}") from error
        if not connection.usable:
            raise Unreachable(f"{at}: it closed the connection at once")
        self._every.add(connection)
        return connection

    def on_free(self, connection: ContainerConnection) -> None:
        if len(self._unused) < _MAX_UNUSED:
            self._unused.append(connection)
        else:
            connection.drop()

    def on_gone(self, connection: ContainerConnection) -> None:
        self._every.discard(connection)
        if connection in self._unused:
            self._unused.remove(connection)

    def sweep(self, now: float) -> None:
        """End unused connections and requests without progress; called once a second."""
        unused = set(self._unused)
        for connection in tuple(self._every):
            if connection in unused:
                if now - connection.free_since > self._limits.kept_idle_s:
                    self._unused.remove(connection)
                    connection.drop()
            elif not connection.waits_for_client and now - connection.progressed_at > self._limits.silence_s:
                connection.end_silence()

    def close(self) -> None:
        """End all connections."""
        for connection in tuple(self._every):
            connection.drop()
