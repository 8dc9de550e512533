"""Incoming header blocks: requests, trailers, and those of closed streams (RFC 9113, sections 5.1 and 6.2)."""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.frames import ConnectionFailure, ErrorCode, StreamFailure
from serving_runtime.protocol.http2.headers.blocks import HeaderReader
from serving_runtime.protocol.http2.headers.fields import Fields
from serving_runtime.protocol.http2.limits import MAX_HEADER_BLOCK_BYTES
from serving_runtime.protocol.http2.outbound_flow import Outbound
from serving_runtime.protocol.http2.stream import Stream

_MOST_CHANGES = 16
"""Changes of the header table. A client with more of them, because it puts an id or a deadline of each request into the
table, is requested to use none: then equal headers are equal bytes, whatever came before them."""

_REMEMBERED = 128
"""Streams that were reset here, whose frames may still arrive, and gaps in the numbers of streams."""


class OpeningConnection(Protocol):
    """What opening streams needs of a connection.

    Attributes:
        streams: the open ones, by number.
        last_accepted: the highest number of an accepted stream.
        out: outgoing frames and content.
        max_streams: limit of open streams.
    """

    streams: dict[int, Stream]
    last_accepted: int
    out: Outbound
    max_streams: int

    def interpret(self, fields: Fields, known: Any, /) -> Any:
        """Return a stream's view of its request's headers (see connection.Host)."""
        ...

    def open_stream(self, stream_id: int, head: Any, /) -> Stream:
        """Return a new stream of such a view."""
        ...


class Opening:
    """Opens the streams of one connection, and ends those whose trailers come.

    Args:
        spend: spends patience, on a frame that brings no request further.

    Attributes:
        last_id: the highest number of a stream that the client has opened.
        was_reset: streams that ended here before the client had ended them.
        headers: decodes the blocks.
        no_table: the client was requested to use no header table.
        awaits: the stream with incomplete headers, None for none.
    """

    def __init__(self, connection: OpeningConnection, spend: Callable[[], None]) -> None:
        self.last_id = 0
        self.was_reset: deque[int] = deque(maxlen=_REMEMBERED)
        self.awaits: int | None = None
        self._connection = connection
        self._streams = connection.streams
        self._spend = spend
        self.headers = HeaderReader(connection.interpret)
        self.no_table = False
        self._skipped: deque[range] = deque(maxlen=_REMEMBERED)
        self._flags = 0
        self._block = bytearray()

    def on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not stream_id & 1:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "HEADERS on a stream that no client opens")
        if flags & (frames.PADDED | frames.PRIORITIZED):
            payload = frames.unpadded(flags, payload)
            if flags & frames.PRIORITIZED:
                if len(payload) < frames.PRIORITY_BYTES:
                    raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR, "HEADERS is too short for its priority")
                if frames.depends_on(payload) == stream_id:
                    raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a stream depends on itself")
                payload = payload[frames.PRIORITY_BYTES :]
        if flags & frames.END_HEADERS:
            self._on_block(flags, stream_id, payload)
        else:
            self.awaits, self._flags, self._block = stream_id, flags, bytearray(payload)

    def on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        if self.awaits is None:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "CONTINUATION follows no HEADERS")
        self._block += payload
        if len(self._block) > MAX_HEADER_BLOCK_BYTES:
            raise ConnectionFailure(
                ErrorCode.ENHANCE_YOUR_CALM, f"headers are larger than {MAX_HEADER_BLOCK_BYTES} bytes"
            )
        self._spend()
        if flags & frames.END_HEADERS:
            block, self._block, self.awaits = bytes(self._block), bytearray(), None
            self._on_block(self._flags, stream_id, block)

    def _on_block(self, flags: int, stream_id: int, block: bytes) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None:
            self._on_trailers(stream, flags, block)
            return
        if stream_id <= self.last_id:
            self._on_old_block(stream_id, block)
            return
        if stream_id != self.last_id + 2:
            self._skipped.append(range(self.last_id + 1, stream_id))
        self.last_id = stream_id
        head, content_length = self.headers.request(block)
        connection = self._connection
        if self.headers.changes >= _MOST_CHANGES and not self.no_table:
            self.no_table = True
            connection.out.write(frames.settings({frames.HEADER_TABLE_SIZE: 0}))
        if stream_id > connection.last_accepted or len(self._streams) >= connection.max_streams:
            raise StreamFailure(ErrorCode.REFUSED_STREAM, "no more streams at once")
        self._streams[stream_id] = stream = connection.open_stream(stream_id, head)
        if content_length is not None:
            stream.expect(content_length)
        stream.ended = bool(flags & frames.END_STREAM)
        stream.on_begin()
        if stream.ended:
            stream.receive_end()

    def _on_trailers(self, stream: Stream, flags: int, block: bytes) -> None:
        self.headers.trailers(block)
        if stream.ended:
            raise StreamFailure(ErrorCode.STREAM_CLOSED, "HEADERS on a stream whose client has ended it")
        if not flags & frames.END_STREAM:
            raise StreamFailure(ErrorCode.PROTOCOL_ERROR, "trailers do not end their stream")
        stream.receive_end()

    def _on_old_block(self, stream_id: int, block: bytes) -> None:
        self.headers.skip(block)
        if stream_id in self.was_reset:
            self._spend()
        elif any(stream_id in gap for gap in self._skipped):
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a stream's number is below one that was used")
        else:
            raise ConnectionFailure(ErrorCode.STREAM_CLOSED, "HEADERS on a stream that is closed")
