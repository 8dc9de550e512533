"""Byte relay: gRPC connections of clients, passed unchanged to a program's port.

    accepted --connected--> bytes pass both ways --either side ends--> what was sent is delivered, and the other ends

The side that reads slowly slows the other one down. Without the program a client's connection is closed, which gRPC
reports as UNAVAILABLE; connections live until the program ends them, which lets it finish their calls.
"""

import asyncio
import logging
import socket
from typing import cast

logger = logging.getLogger(__name__)

_CONNECT_S = 2.0


class ByteRelay:
    """Relays what one socket accepts.

    Args:
        sock: bound.
        port: at 127.0.0.1.
    """

    def __init__(self, sock: socket.socket, port: int) -> None:
        self.port = port
        self.sides: set[Side] = set()
        self.connecting: set[asyncio.Task[None]] = set()
        self._socket = sock
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Listen; raises OSError where another process has taken the address since it was bound."""
        loop = asyncio.get_running_loop()
        create = loop.create_unix_server if self._socket.family == socket.AF_UNIX else loop.create_server
        self._server = await create(lambda: Client(self), sock=self._socket, backlog=1024)

    def stop_accepting(self) -> None:
        """Close the listening socket; connections stay."""
        if self._server is not None:
            self._server.close()

    def close(self) -> None:
        """End the socket and all connections."""
        self.stop_accepting()
        for task in tuple(self.connecting):
            task.cancel()
        for side in tuple(self.sides):
            side.transport.abort()


class Side(asyncio.Protocol):
    """One end of a relayed connection.

    Attributes:
        sent_all: it has ended what it sends.
    """

    transport: asyncio.Transport

    def __init__(self, relay: ByteRelay) -> None:
        self.relay = relay
        self.other: Side | None = None
        self.sent_all = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's do not inherit from asyncio's
        self.relay.sides.add(self)

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and not self.other.transport.is_closing():
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def eof_received(self) -> bool:
        """Pass the end of what this side sends on; the other one may still answer, until it has ended too."""
        self.sent_all = True
        other = self.other
        if other is None or other.sent_all or other.transport.is_closing() or not other.transport.can_write_eof():
            return False
        other.transport.write_eof()
        return True

    def connection_lost(self, _error: Exception | None) -> None:
        self.relay.sides.discard(self)
        if self.other is not None:
            self.other.transport.close()  # after what is on its way


class Client(Side):
    """The end of a client: what it sends first waits for the program to accept the connection."""

    def __init__(self, relay: ByteRelay) -> None:
        super().__init__(relay)
        self._early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        task = asyncio.get_running_loop().create_task(self._connect())
        self.relay.connecting.add(task)
        task.add_done_callback(self.relay.connecting.discard)

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early += data
            self.transport.pause_reading()  # only now: uvloop begins to read after `connection_made`
        else:
            super().data_received(data)

    def eof_received(self) -> bool:
        if self.other is None:
            self.sent_all = True
            return True
        return super().eof_received()

    def accepted(self, program: Side) -> None:
        """Pass on what came before the program's connection, and go on."""
        self.other = program
        self.transport.resume_reading()
        if self._early:
            program.transport.write(self._early)
            self._early = b""
        if self.sent_all:
            program.transport.write_eof()

    async def _connect(self) -> None:
        loop, port = asyncio.get_running_loop(), self.relay.port
        try:
            async with asyncio.timeout(_CONNECT_S):
                await loop.create_connection(lambda: Program(self), "127.0.0.1", port)
        except OSError as error:  # TimeoutError is one
            logger.warning("no gRPC connection to 127.0.0.1:%d: %s", port, error.strerror or "no answer")
            self.transport.abort()


class Program(Side):
    """The end of the program, which may speak first."""

    def __init__(self, client: Client) -> None:
        super().__init__(client.relay)
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        client = self._client
        if client.transport.is_closing():  # it has left meanwhile
            self.transport.abort()
            return
        self.other = client
        client.accepted(self)
