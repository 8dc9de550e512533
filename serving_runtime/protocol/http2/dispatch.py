"""HTTP/2 frame dispatch: order and rules of incoming frames, and their streams (RFC 9113, sections 3.4, 5 and 6)."""

from typing import Protocol

from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.frames import ConnectionFailure, ErrorCode, StreamFailure
from serving_runtime.protocol.http2.header_blocks import Opening, OpeningConnection
from serving_runtime.protocol.http2.limits import CONNECTION_WINDOW_BYTES, Patience


class FrameConnection(OpeningConnection, Protocol):
    """What frames do to a connection.

    Attributes:
        heard_at: the loop's time when the client last sent something.
        over: nothing more is read or begun.
    """

    heard_at: float
    over: bool

    def reset(self, stream_id: int, code: ErrorCode) -> None:
        """End a stream at once."""
        ...

    def forget(self, stream_id: int) -> None:
        """Drop a stream, and notify it."""
        ...

    def bears_ping(self) -> bool:
        """Return whether the client may send a ping now."""
        ...

    def answered_ping(self, payload: bytes) -> None:
        """Handle the answer to a ping."""
        ...


class Dispatcher:
    """Reads one connection's frames; `read` raises ConnectionFailure for errors that end the connection.

    Attributes:
        opening: opens the streams.
        greeted: the connection's preface has arrived.
    """

    def __init__(self, connection: FrameConnection) -> None:
        self.opening = Opening(connection, self._spend)
        self._connection = connection
        self._streams = connection.streams
        self._patience = Patience(connection.heard_at)
        self._frames_noted = self._acknowledged = 0
        self._on = (
            self._on_data,
            self.opening.on_headers,
            self._on_priority,
            self._on_rst_stream,
            self._on_settings,
            self._on_push_promise,
            self._on_ping,
            self._on_goaway,
            self._on_window_update,
            self.opening.on_continuation,
        )
        self.greeted = self._configured = False
        self._window_bytes = CONNECTION_WINDOW_BYTES

    def read(self, data: bytes) -> int:
        """Return how many bytes of whole frames were read."""
        at, end = 0, len(data)
        if not self.greeted:
            if data[: len(frames.PREFACE)] != frames.PREFACE[:end]:
                raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "the connection does not begin as HTTP/2 does")
            if end < len(frames.PREFACE):
                return 0
            self.greeted, at = True, len(frames.PREFACE)
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
            if not self._configured or self.opening.awaits is not None:
                self._check_order(kind, flags, stream_id)
            if kind < len(self._on):
                try:
                    self._on[kind](flags, stream_id, data[at + frames.HEAD_BYTES : after])
                except StreamFailure as failure:
                    self._spend()
                    self._connection.reset(stream_id, failure.code)
            else:  # an extension frame
                self._spend()
            at = after
        return at

    # By frame type

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._take_window(len(payload))
        stream = self._streams.get(stream_id)
        if stream is None or stream.ended:
            self._check_known(stream_id)
            if stream is None and stream_id in self.opening.was_reset:
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
        """Count content; the connection's window is always widened, the limit is the streams' windows."""
        self._window_bytes -= size_bytes
        if self._window_bytes < 0:
            raise ConnectionFailure(ErrorCode.FLOW_CONTROL_ERROR, "more DATA than the connection's window allows")
        if self._window_bytes < CONNECTION_WINDOW_BYTES // 2:
            self._connection.out.write(frames.window_update(0, CONNECTION_WINDOW_BYTES - self._window_bytes))
            self._window_bytes = CONNECTION_WINDOW_BYTES

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
            self._acknowledged += 1
            if self._acknowledged == 2:  # the first is of the connection's initial settings
                self.opening.headers.refuse_table()
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
        if not self._connection.bears_ping():
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
        if self.opening.awaits not in (None, stream_id if kind == frames.CONTINUATION else -1):
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "headers are interrupted by another frame")

    def _check_known(self, stream_id: int) -> None:
        _check_stream(stream_id)
        if stream_id > self.opening.last_id or not stream_id & 1:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a frame is on a stream that was not opened")

    def _spend(self) -> None:
        """Spend patience on a frame that brings no request further."""
        connection = self._connection
        sent = connection.out.frames_sent - self._frames_noted
        self._frames_noted += sent
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
