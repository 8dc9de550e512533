"""HTTP response writer: whole, compressed, or in pieces as they come (RFC 9112, chunked transfer coding)."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from serving_runtime.protocol.http.wire import compression
from serving_runtime.protocol.http.wire.message import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_AT_ONCE_BYTES = 64 * 1024
"""Answers up to this are compressed in the event loop: the hop to a thread and back takes as long."""


def whole(begun: Mapping[int, bytes], response: Response, *, keep_alive: bool) -> bytes:
    """Return an answer with a known body, head and body; `begun` holds the beginning of an answer by status."""
    ending = b"Content-Length: %d\r\n\r\n" if keep_alive else b"Connection: close\r\nContent-Length: %d\r\n\r\n"
    return b"".join((begun[response.status], response.headers, ending % response.length, *response.chunks))


_APART_BYTES = 256 * 1024
"""Larger texts are written chunk by chunk: joining them first copies them while others wait."""


def write(
    transport: asyncio.WriteTransport, begun: Mapping[int, bytes], response: Response, *, keep_alive: bool
) -> None:
    """Write an answer with a known body; tensors are copied, since the model reuses their memory."""
    apart = (
        response.length > _APART_BYTES and response.chunks and all(type(chunk) is bytes for chunk in response.chunks)
    )
    if not apart:
        transport.write(whole(begun, response, keep_alive=keep_alive))
        return
    transport.write(whole(begun, response._replace(chunks=()), keep_alive=keep_alive))
    for chunk in response.chunks:
        transport.write(chunk)


def head_of_pieces(begun: Mapping[int, bytes], response: Response, *, keep_alive: bool, chunked: bool) -> bytes:
    """Return the head of an answer whose body follows in pieces: chunks, or bytes to the end of the connection."""
    ending = b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"\r\n"
    return b"".join((begun[response.status], response.headers, b"" if keep_alive else b"Connection: close\r\n", ending))


def compressible(response: Response) -> bool:
    return response.length >= compression.WORTH_BYTES


def compressed(response: Response, accept_encoding: bytes, write: Callable[[Response], None]) -> None:
    """Call `write` with the answer in the client's preferred coding, now or later, on the event loop."""
    coding = compression.accepted(accept_encoding)
    if not coding:
        write(response)
        return
    headers = response.headers + b"Content-Encoding: %s\r\nVary: Accept-Encoding\r\n" % coding

    def finish(body: bytes) -> None:
        write(Response(response.status, headers, (body,), len(body)))

    if response.length <= _AT_ONCE_BYTES:
        finish(compression.compress(response.chunks, coding))
        return
    work = asyncio.get_running_loop().run_in_executor(None, compression.compress, response.chunks, coding)
    work.add_done_callback(lambda done: finish(done.result()))


class BodyWriter:
    """Writes the pieces of a body; call `end` once, after the last."""

    def __init__(self, transport: asyncio.WriteTransport, ended: Callable[[], None], *, chunked: bool) -> None:
        self._transport = transport
        self._chunked = chunked
        self._ended = ended

    @property
    def buffered_bytes(self) -> int:
        """Return how many bytes the client has not taken yet."""
        return self._transport.get_write_buffer_size()

    def write(self, piece: Any) -> None:
        """Send one piece, an object with the buffer interface, as one chunk; an empty one is skipped."""
        length = memoryview(piece).nbytes
        if length and not self._transport.is_closing():
            self._transport.write(b"".join((b"%x\r\n" % length, piece, b"\r\n")) if self._chunked else piece)

    def end(self) -> None:
        if not self._transport.is_closing():
            if self._chunked:
                self._transport.write(b"0\r\n\r\n")
            self._ended()
