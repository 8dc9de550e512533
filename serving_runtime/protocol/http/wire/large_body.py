"""Zero-copy reception of large request bodies: the kernel writes into the request's buffer.

While a body arrives this replaces the connection as asyncio's protocol: bytes are not passed on, parsed and copied
together, but read into the request's one buffer. It requests no byte more than the body has, so that later bytes are
left to the connection.
"""

import asyncio
from collections.abc import Callable

from serving_runtime.protocol.http.wire.limits import MUCH_BYTES
from serving_runtime.protocol.http.wire.reader import RequestReader

WORTH_BYTES = 64 * 1024
"""Smaller bodies are as fast on the normal path."""


class LargeBody(asyncio.BufferedProtocol):
    """Fills the buffer of one body.

    Args:
        connection: handles all but the body.
        arrived: called once the body is full.
        take_turns: called after a large read, so that other connections have their turn.
    """

    def __init__(
        self,
        connection: asyncio.BaseProtocol,
        reader: RequestReader,
        arrived: Callable[[], None],
        take_turns: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._reader = reader
        self._take_turns = take_turns
        self._arrived = arrived

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - as much as is good for all
        return self._reader.room()

    def buffer_updated(self, nbytes: int) -> None:
        if self._reader.filled(nbytes):
            self._arrived()
        if nbytes >= MUCH_BYTES:
            self._take_turns()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)
