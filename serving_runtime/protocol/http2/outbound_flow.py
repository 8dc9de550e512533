"""HTTP/2 outbound flow control: streams with content send one frame each in turn, as windows and the socket allow."""

import asyncio
from collections import deque
from typing import Protocol, TypeAlias

from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.frames import ConnectionFailure, ErrorCode, Http2Error
from serving_runtime.protocol.http2.headers.blocks import NO_TABLE
from serving_runtime.protocol.http2.limits import MAX_UNSENT_BYTES

Content: TypeAlias = bytes | memoryview

_LONGEST_FRAME_BYTES = 256 * 1024


class Sender(Protocol):
    """Stream with content to send; its attributes are those of `stream.Stream`."""

    finished: bool
    id: int
    send_window_bytes: int
    unsent_bytes: int

    def on_end(self) -> None:
        """Handle the end of the request."""
        ...

    def take(self, most_bytes: int) -> Content:
        """Return the next content to send, as much as its window allows."""
        ...

    def sent(self) -> None:
        """Continue after all content is out."""
        ...


class Outbound:
    """Outgoing frames and content of one connection.

    Attributes:
        initial_window_bytes, max_frame_bytes: the client's settings.
        window_bytes: the client's window for all streams together.
        unsent_bytes: content of all streams that waits for a window or the socket.
        paused: the socket takes no more.
        frames_sent: with headers or content.
        owes_table_size: the client has reduced the header table, which the next headers confirm.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self.write = transport.write
        self._writelines = transport.writelines
        self.initial_window_bytes = self.window_bytes = frames.DEFAULT_WINDOW_BYTES
        self.max_frame_bytes = frames.SMALLEST_MAX_FRAME_BYTES
        self.unsent_bytes = self.frames_sent = 0
        self.paused = self.owes_table_size = False
        self._table_bytes = frames.DEFAULT_TABLE_BYTES  # reserved by the client, not used
        self._ready: dict[Sender, None] = {}  # have content and an open window
        self._held_up: deque[Sender] = deque()  # complete requests, while too much is unsent
        self._pumping = False

    def has_content(self, stream: Sender) -> None:
        """Send a stream's content in its turn."""
        if stream.send_window_bytes > 0:
            self._ready[stream] = None
            self.pump()

    def begin(self, stream: Sender) -> None:
        """Call a stream's handler for its complete request, once the client has read enough of its pending answers."""
        if self.unsent_bytes > MAX_UNSENT_BYTES:
            self._held_up.append(stream)
        else:
            stream.on_end()

    def forget(self, stream: Sender) -> None:
        """Send no more of a stream."""
        self._ready.pop(stream, None)
        self.unsent_bytes -= stream.unsent_bytes
        if self._held_up:
            self._begin_held_up()

    def configure(self, settings: dict[int, int], streams: tuple[Sender, ...]) -> None:
        """Apply the client's settings; raises ConnectionFailure where a window grows out of bounds."""
        self.max_frame_bytes = min(settings.get(frames.MAX_FRAME_SIZE, self.max_frame_bytes), _LONGEST_FRAME_BYTES)
        if settings.get(frames.HEADER_TABLE_SIZE, self._table_bytes) < self._table_bytes:
            self.owes_table_size = True
        window = settings.get(frames.INITIAL_WINDOW_SIZE)
        if window is not None:
            change, self.initial_window_bytes = window - self.initial_window_bytes, window
            for stream in streams:
                self._widen(stream, change, ConnectionFailure)
            self.pump()

    def confirm_table_size(self, block: bytes) -> bytes:
        """Return a header block that first sets the table size to 0, once: that is below any size that the client may
        set later (RFC 7541, section 4.2)."""
        self.owes_table_size, self._table_bytes = False, 0
        return NO_TABLE + block

    def widen(self, increment_bytes: int) -> None:
        """Widen the connection's window; raises ConnectionFailure."""
        if not increment_bytes:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE by 0")
        self.window_bytes += increment_bytes
        if self.window_bytes > frames.MAX_WINDOW_BYTES:
            raise ConnectionFailure(ErrorCode.FLOW_CONTROL_ERROR, "the connection's window is above 2^31-1")
        self.pump()

    def widen_stream(self, stream: Sender, increment_bytes: int) -> None:
        """Widen a stream's window; raises StreamFailure."""
        if not increment_bytes:
            raise frames.StreamFailure(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE by 0")
        self._widen(stream, increment_bytes, frames.StreamFailure)
        self.pump()

    def pump(self) -> None:
        """Send as much as possible."""
        if self._pumping:  # called by a stream's `on_sent`: the loop below goes on
            return
        self._pumping = True
        ready = self._ready
        while ready and self.window_bytes > 0 and not self.paused:
            stream = next(iter(ready))
            del ready[stream]
            content = stream.take(min(self.window_bytes, self.max_frame_bytes))
            size = len(content)
            self.window_bytes -= size
            self.unsent_bytes -= size
            self.frames_sent += 1
            self._writelines((frames.head(size, frames.DATA, 0, stream.id), content))
            if not stream.unsent_bytes:
                stream.sent()
            elif stream.send_window_bytes > 0:
                ready[stream] = None
        self._pumping = False
        if self._held_up:
            self._begin_held_up()

    def _widen(self, stream: Sender, size_bytes: int, failure: type[Http2Error]) -> None:
        stream.send_window_bytes += size_bytes
        if stream.send_window_bytes > frames.MAX_WINDOW_BYTES:
            raise failure(ErrorCode.FLOW_CONTROL_ERROR, "a stream's window is above 2^31-1")
        if stream.unsent_bytes and stream.send_window_bytes > 0:
            self._ready[stream] = None

    def _begin_held_up(self) -> None:
        while self._held_up and self.unsent_bytes <= MAX_UNSENT_BYTES:
            stream = self._held_up.popleft()
            if not stream.finished:
                stream.on_end()
