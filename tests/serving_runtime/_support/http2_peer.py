"""A client of HTTP/2 and a server's connection that talk through memory, for tests of rules and limits."""

import asyncio
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.connection import Connection
from serving_runtime.protocol.http2.headers.blocks import encode
from serving_runtime.protocol.http2.headers.fields import Fields
from serving_runtime.protocol.http2.limits import MAX_STREAMS
from serving_runtime.protocol.http2.stream import Stream
from serving_runtime.protocol.turns import ReadTurns

REQUEST = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"x"))
HEADERS = encode([(b":status", b"200")])
TRAILERS = encode([(b"done", b"yes")])


class Frame(NamedTuple):
    kind: int
    flags: int
    stream_id: int
    payload: bytes


class Transport(asyncio.Transport):
    """Keeps what is written to it; `full` makes it take no more, as a client that does not read does."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.buffered_bytes = 0
        self.full = self.closed = self.reading_paused = False
        self.protocol: Connection

    def write(self, data: Any) -> None:
        if self.full:
            self.buffered_bytes += len(data)
            self.protocol.pause_writing()
        else:
            self.written += data

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.buffered_bytes

    def pause_reading(self) -> None:
        self.reading_paused = True

    def resume_reading(self) -> None:
        self.reading_paused = False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = write_eof = close

    def can_write_eof(self) -> bool:
        return True

    def empty(self) -> None:
        """Read what the server has written, all of it."""
        self.full = False
        self.buffered_bytes = 0
        self.protocol.resume_writing()


class Echo(Stream):
    """Answers a request with its content; notes what became of it."""

    __slots__ = ("content", "gone", "head")

    def __init__(self, connection: Connection, stream_id: int, head: Fields) -> None:
        super().__init__(connection, stream_id)
        self.head = head
        self.content = b""
        self.gone = False

    def on_content(self, content: bytes) -> None:
        self.content += content

    def on_end(self) -> None:
        self.answer(HEADERS, self.content, TRAILERS)

    def on_gone(self) -> None:
        self.gone = True


class Slow(Echo):
    """Answers when the test says so."""

    __slots__ = ("complete",)

    def on_begin(self) -> None:
        self.complete = False

    def on_end(self) -> None:
        self.complete = True


class Host:
    """Makes streams of one class and keeps them."""

    def __init__(self, stream: type[Echo] = Echo, max_streams: int = MAX_STREAMS) -> None:
        self.max_streams = max_streams
        self.turns = ReadTurns()
        self.lifetime: Any = None  # who decides of pings
        self.streams: list[Any] = []
        self.interpreted = 0
        self._stream = stream

    def interpret(self, fields: Fields, _known: Fields | None) -> Fields:
        self.interpreted += 1
        return tuple(fields)

    def stream(self, connection: Connection, stream_id: int, head: Fields) -> Stream:
        self.streams.append(self._stream(connection, stream_id, head))
        return self.streams[-1]  # type: ignore[no-any-return]

    def bears_ping(self, _connection: Connection) -> bool:
        return self.lifetime is None or self.lifetime.bears_ping()

    def add(self, connection: Connection) -> None:
        self.connection: Connection | None = connection

    def remove(self, _connection: Connection) -> None:
        self.connection = None


class Peer:
    """The client's side; greets at once."""

    def __init__(
        self, host: Host | None = None, settings: dict[int, int] | None = None, *, greets: bool = True
    ) -> None:
        self.host = host or Host()
        self.transport = Transport()
        self.connection = Connection(self.host)
        self.transport.protocol = self.connection
        self.connection.connection_made(self.transport)
        self._next_id = 1
        if greets:
            self.send(frames.PREFACE, frames.settings(settings or {}))
            self.received()

    def send(self, *pieces: bytes) -> None:
        """Send bytes as one piece; nothing arrives at a connection that was closed."""
        if not self.transport.closed:
            self.connection.data_received(b"".join(pieces))

    def begin(self, fields: Sequence[tuple[bytes, bytes]] = REQUEST, *, end: bool = False) -> int:
        """Send headers; return the stream's number."""
        number, self._next_id = self._next_id, self._next_id + 2
        self.send(headers(number, fields, end=end))
        return number

    def ask(self, content: bytes = b"") -> int:
        """Send a whole request in one piece; return the stream's number."""
        number, self._next_id = self._next_id, self._next_id + 2
        self.send(headers(number), frames.frame(frames.DATA, frames.END_STREAM, number, content))
        return number

    def received(self) -> list[Frame]:
        """Return the frames that the server has sent since the last call."""
        data, found = bytes(self.transport.written), []
        self.transport.written.clear()
        while data:
            high, low, kind, flags, number = frames.HEAD.unpack_from(data)
            end = frames.HEAD_BYTES + (high << 16 | low)
            found.append(Frame(kind, flags, number, data[frames.HEAD_BYTES : end]))
            data = data[end:]
        return found

    def farewell(self) -> tuple[frames.ErrorCode, str] | None:
        """Return what the last GOAWAY said, None where there was none."""
        for frame in reversed(self.received()):
            if frame.kind == frames.GOAWAY:
                _, code = struct.unpack_from(">II", frame.payload)
                return frames.ErrorCode(code), frame.payload[8:].decode()
        return None


def headers(number: int, fields: Sequence[tuple[bytes, bytes]] = REQUEST, *, end: bool = False) -> bytes:
    flags = frames.END_HEADERS | (frames.END_STREAM if end else 0)
    return frames.frame(frames.HEADERS, flags, number, encode(fields))
