"""Frames that come in: their order, their rules, and which stream gets what (RFC 9113, sections 3.4, 5 and 6)."""

from collections import deque
from typing import TYPE_CHECKING

from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.frames import ConnectionFailure, ErrorCode, StreamFailure
from serving_runtime.protocol.http2.header_blocks import HeaderReader
from serving_runtime.protocol.http2.limits import (
    CONNECTION_WINDOW_BYTES,
    MAX_HEADER_BLOCK_BYTES,
    Patience,
    PingStrikes,
)
from serving_runtime.protocol.http2.stream import Stream

if TYPE_CHECKING:
    from serving_runtime.protocol.http2.connection import Connection

_REMEMBERED = 128
"""Streams that were reset here, whose frames may still be under way, and gaps in the numbers of streams."""


class Dispatcher:
    """Reads one connection's frames; `read` raises ConnectionFailure for what ends the connection.

    Attributes:
        last_id: the highest number of a stream that the client has opened.
        was_reset: streams that ended here before the client had ended them.
    """

    def __init__(self, connection: "Connection") -> None:
        self.last_id = 0
        self.was_reset: deque[int] = deque(maxlen=_REMEMBERED)
        self._connection = connection
        self._streams = connection.streams
        self._headers = HeaderReader(connection.host.interpret)
        self._patience = Patience(connection.heard_at)
        self._pings = PingStrikes(connection.host.limits)
        self._frames_noted = 0
        self._on = (
            self._on_data,
            self._on_headers,
            self._on_priority,
            self._on_rst_stream,
            self._on_settings,
            self._on_push_promise,
            self._on_ping,
            self._on_goaway,
            self._on_window_update,
            self._on_continuation,
        )
        self._greeted = self._configured = False
        self._window_bytes = CONNECTION_WINDOW_BYTES
        self._skipped: deque[range] = deque(maxlen=_REMEMBERED)
        self._block: tuple[int, int, bytearray] | None = None  # stream, flags and bytes of headers not yet complete

    def read(self, data: bytes) -> int:
        """Return how many bytes of whole frames were read."""
        at, end = 0, len(data)
        if not self._greeted:
            if data[: len(frames.PREFACE)] != frames.PREFACE[:end]:
                raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "the connection does not begin as HTTP/2 does")
            if end < len(frames.PREFACE):
                return 0
            self._greeted, at = True, len(frames.PREFACE)
        unpack = frames.HEAD.unpack_from
        while end - at >= frames.HEAD_BYTES and not self._connection.over:
            high, low, kind, flags, stream_id = unpack(data, at)
            length = high << 16 | low
            if length > frames.SMALLEST_MAX_FRAME_BYTES:
                raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR, "a frame is larger than SETTINGS_MAX_FRAME_SIZE")
            after = at + frames.HEAD_BYTES + length
            if after > end:
                break
            stream_id &= frames.LAST_STREAM_ID
            if not self._configured or self._block is not None:
                self._check_order(kind, flags, stream_id)
            if kind < len(self._on):
                try:
                    self._on[kind](flags, stream_id, data[at + frames.HEAD_BYTES : after])
                except StreamFailure as failure:
                    self._spend()
                    self._connection.reset(stream_id, failure.code)
            else:  # of an extension
                self._spend()
            at = after
        return at

    # By kind of frame

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._take_window(len(payload))
        stream = self._streams.get(stream_id)
        if stream is None or stream.ended:
            self._check_known(stream_id)
            if stream is None and stream_id in self.was_reset:
                return
            raise StreamFailure(ErrorCode.STREAM_CLOSED, "DATA on a stream whose client has ended it")
        stream.receive(len(payload))
        content = payload
        if flags & frames.PADDED:
            content = frames.unpadded(flags, payload)
            stream.grant(len(payload) - len(content))
        if not content and not flags & frames.END_STREAM:
            self._spend()
        stream.receive_content(content)
        if flags & frames.END_STREAM:
            stream.receive_end()

    def _take_window(self, size_bytes: int) -> None:
        """Take note of content; the connection's window is widened whatever becomes of it, streams' are the limit."""
        self._window_bytes -= size_bytes
        if self._window_bytes < 0:
            raise ConnectionFailure(ErrorCode.FLOW_CONTROL_ERROR, "more DATA than the connection's window allows")
        if self._window_bytes < CONNECTION_WINDOW_BYTES // 2:
            self._connection.out.write(frames.window_update(0, CONNECTION_WINDOW_BYTES - self._window_bytes))
            self._window_bytes = CONNECTION_WINDOW_BYTES

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
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
            self._block = (stream_id, flags, bytearray(payload))

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        if self._block is None:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "CONTINUATION follows no HEADERS")
        _, first_flags, block = self._block
        block += payload
        if len(block) > MAX_HEADER_BLOCK_BYTES:
            raise ConnectionFailure(
                ErrorCode.ENHANCE_YOUR_CALM, f"headers are larger than {MAX_HEADER_BLOCK_BYTES} bytes"
            )
        self._spend()
        if flags & frames.END_HEADERS:
            self._block = None
            self._on_block(first_flags, stream_id, bytes(block))

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
        head, content_length = self._headers.request(block)
        connection = self._connection
        if stream_id > connection.last_accepted or len(self._streams) >= connection.host.limits.max_streams:
            raise StreamFailure(ErrorCode.REFUSED_STREAM, "no more streams at once")
        self._streams[stream_id] = stream = connection.host.stream(connection, stream_id, head)
        if content_length is not None:
            stream.expect(content_length)
        stream.ended = bool(flags & frames.END_STREAM)
        stream.on_begin()
        if stream.ended:
            stream.receive_end()

    def _on_trailers(self, stream: Stream, flags: int, block: bytes) -> None:
        self._headers.trailers(block)
        if stream.ended:
            raise StreamFailure(ErrorCode.STREAM_CLOSED, "HEADERS on a stream whose client has ended it")
        if not flags & frames.END_STREAM:
            raise StreamFailure(ErrorCode.PROTOCOL_ERROR, "trailers do not end their stream")
        stream.receive_end()

    def _on_old_block(self, stream_id: int, block: bytes) -> None:
        self._headers.skip(block)
        if stream_id in self.was_reset:
            self._spend()
        elif any(stream_id in gap for gap in self._skipped):
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a stream's number is below one that was used")
        else:
            raise ConnectionFailure(ErrorCode.STREAM_CLOSED, "HEADERS on a stream that is closed")

    def _on_priority(self, _flags: int, stream_id: int, payload: bytes) -> None:
        _check_stream(stream_id)
        self._spend()
        if len(payload) != frames.PRIORITY_BYTES:
            raise StreamFailure(ErrorCode.FRAME_SIZE_ERROR, "PRIORITY has not 5 bytes")
        if frames.depends_on(payload) == stream_id:
            raise StreamFailure(ErrorCode.PROTOCOL_ERROR, "a stream depends on itself")

    def _on_rst_stream(self, _flags: int, stream_id: int, payload: bytes) -> None:
        self._check_known(stream_id)
        _check_size(payload, 4, "RST_STREAM")
        self._spend()
        self._connection.forget(stream_id)

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_connection(stream_id)
        if flags & frames.ACK:
            _check_size(payload, 0, "an acknowledged SETTINGS")
            return
        self._spend()
        out = self._connection.out
        out.write(frames.frame(frames.SETTINGS, frames.ACK, 0))
        out.configure(frames.read_settings(payload), tuple(self._streams.values()))

    def _on_push_promise(self, _flags: int, _stream_id: int, _payload: bytes) -> None:
        raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "clients push nothing")

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_connection(stream_id)
        _check_size(payload, 8, "PING")
        self._spend()
        if flags & frames.ACK:
            self._connection.answered_ping(payload)
            return
        if not self._pings.borne(self._connection.heard_at):
            raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM, "too_many_pings")
        self._connection.out.write(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _on_goaway(self, _flags: int, stream_id: int, payload: bytes) -> None:
        _check_connection(stream_id)
        if len(payload) < 8:
            raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR, "GOAWAY has less than 8 bytes")
        self._spend()  # the client ends the connection when it has its answers

    def _on_window_update(self, _flags: int, stream_id: int, payload: bytes) -> None:
        _check_size(payload, 4, "WINDOW_UPDATE")
        self._spend()
        increment = int.from_bytes(payload, "big") & frames.MAX_WINDOW_BYTES
        if not stream_id:
            self._connection.out.widen(increment)
            return
        self._check_known(stream_id)
        stream = self._streams.get(stream_id)
        if stream is not None:
            self._connection.out.widen_stream(stream, increment)

    # Rules

    def _check_order(self, kind: int, flags: int, stream_id: int) -> None:
        if not self._configured:
            if kind != frames.SETTINGS or flags & frames.ACK:
                raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
            self._configured = True
        if self._block is not None and (kind != frames.CONTINUATION or stream_id != self._block[0]):
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "headers are interrupted by another frame")

    def _check_known(self, stream_id: int) -> None:
        _check_stream(stream_id)
        if stream_id > self.last_id or not stream_id & 1:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a frame is on a stream that was not opened")

    def _spend(self) -> None:
        """Use up patience for a frame that brings no request further."""
        connection = self._connection
        sent = connection.out.frames_sent - self._frames_noted
        self._frames_noted += sent
        if sent:
            self._pings.excused()
        if not self._patience.spend(connection.heard_at, sent):
            raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM, "too many frames that bring no request further")


def _check_stream(stream_id: int) -> None:
    if not stream_id:
        raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a frame of a stream is on none")


def _check_connection(stream_id: int) -> None:
    if stream_id:
        raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a frame of the connection is on a stream")


def _check_size(payload: bytes, size_bytes: int, kind: str) -> None:
    if len(payload) != size_bytes:
        raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR, f"{kind} has not {size_bytes} bytes")
