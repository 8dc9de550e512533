"""HTTP/2 stream: one request and its answer. A server overrides methods for the first and calls those for the second.

    headers --on_content--> ... --on_end--> answered --> closed
       `--------------------- on_gone: reset by the client, or the connection is lost

Outgoing content waits here while the client's windows or its socket are full; incoming content is bounded by the
window, which only `grant` widens.
"""

from collections import deque
from typing import Protocol

from serving_runtime.protocol.http2.frames import (
    DATA,
    DEFAULT_WINDOW_BYTES,
    END_HEADERS,
    END_STREAM,
    HEAD,
    HEADERS,
    MAX_WINDOW_BYTES,
    ErrorCode,
    StreamFailure,
    frame,
    window_update,
)
from serving_runtime.protocol.http2.inbound_flow import InboundBudget
from serving_runtime.protocol.http2.outbound_flow import Content, Outbound


class StreamConnection(Protocol):
    """What a stream sees of its connection.

    Attributes:
        inbound: grants windows beyond the default ones.
        out: outgoing frames and content.
        peer: the caller at the other end (protocol.callers).
    """

    inbound: InboundBudget
    out: Outbound
    peer: bytes

    def finished(self, stream: "Stream") -> None:
        """Drop a stream whose answer is complete."""
        ...

    def reset(self, stream_id: int, code: ErrorCode) -> None:
        """End a stream at once."""
        ...


_NOTHING: deque[Content] = deque(maxlen=0)
"""Most streams' content, whose answers go out at once."""


class Stream:
    """Base of all streams; subclasses override the methods that begin with `on_`.

    Attributes:
        ended: the client has sent all of its request.
        finished: the answer is complete or no longer wanted; nothing more may be sent.
        window_bytes: what the client may still send.
        send_window_bytes: what the server may still send; below 0 where the client reduced its window.
        unsent_bytes: content that waits for a window or the socket.
        received_bytes: of DATA.
    """

    __slots__ = (
        "_expected_bytes",
        "_trailers",
        "_waiting",
        "connection",
        "ended",
        "finished",
        "id",
        "received_bytes",
        "send_window_bytes",
        "unsent_bytes",
        "window_bytes",
    )

    def __init__(self, connection: StreamConnection, stream_id: int) -> None:
        self.connection = connection
        self.id = stream_id
        self.ended = self.finished = False
        self.window_bytes = DEFAULT_WINDOW_BYTES
        self.send_window_bytes = connection.out.initial_window_bytes
        self.unsent_bytes = self.received_bytes = 0
        self._waiting: deque[Content] = _NOTHING
        self._trailers: bytes | None = None
        self._expected_bytes: int | None = None

    # Overridden by a server

    def on_begin(self) -> None:
        """Handle the request's headers; `ended` is set where nothing follows."""

    def on_content(self, content: bytes) -> None:
        """Handle a piece of the request."""

    def on_end(self) -> None:
        """Handle the end of the request."""

    def on_gone(self) -> None:
        """Handle the loss of the stream: no answer is wanted any more."""

    def on_sent(self) -> None:
        """Handle an empty send queue."""

    @property
    def awaits_content(self) -> bool:
        """Return whether the client owes more of its request, for which it has a limited time."""
        return not self.ended

    def on_overdue(self) -> None:
        """Handle a client that is too slow to send its request."""
        self.reset(ErrorCode.CANCEL)

    @property
    def answer_waits(self) -> bool:
        """Return whether a whole answer waits to be read, for which the client has a limited time."""
        return self.unsent_bytes > 0 and self._trailers is not None

    # Called by a server

    def grant(self, size_bytes: int) -> None:
        """Let the client send that much more, as far as windows reach."""
        size_bytes = min(size_bytes, MAX_WINDOW_BYTES - max(0, self.window_bytes))
        if size_bytes > 0 and not (self.ended or self.finished):
            self.window_bytes += size_bytes
            self.connection.out.write(window_update(self.id, size_bytes))

    def answer(self, headers: bytes, content: bytes, trailers: bytes) -> None:
        """Send a whole answer, in one write where windows and the socket have room."""
        size = len(content)
        out = self.connection.out
        if self.finished:
            return
        if size > self.send_window_bytes or size > out.window_bytes or size > out.max_frame_bytes or out.paused:
            self.send_headers(headers)
            self.send(content)
            self.finish(trailers)
            return
        if out.owes_table_size:
            headers = out.confirm_table_size(headers)
        out.window_bytes -= size
        number = self.id
        pack = HEAD.pack
        out.write(
            b"".join(
                (
                    pack(0, len(headers), HEADERS, END_HEADERS, number),
                    headers,
                    pack(size >> 16, size & 0xFFFF, DATA, 0, number),
                    content,
                    pack(0, len(trailers), HEADERS, END_HEADERS | END_STREAM, number),
                    trailers,
                )
            )
        )
        out.frames_sent += 3
        self.finished = True
        self.connection.finished(self)

    def send_headers(self, block: bytes, *, end: bool = False) -> None:
        """Send headers; `end` where they are the whole answer."""
        if self.finished:
            return
        out = self.connection.out
        if out.owes_table_size:
            block = out.confirm_table_size(block)
        out.write(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), self.id, block))
        out.frames_sent += 1
        if end:
            self.finished = True
            self.connection.finished(self)

    def send(self, content: Content) -> None:
        """Send content now or when there is room for it; `on_sent` is called when all is out."""
        if self.finished:
            return
        if not self._waiting:
            self._waiting = deque()
        self._waiting.append(content)
        self.unsent_bytes += len(content)
        out = self.connection.out
        out.unsent_bytes += len(content)
        if len(self._waiting) == 1:
            out.has_content(self)

    def finish(self, trailers: bytes = b"") -> None:
        """End the answer, with trailers if any, after queued content."""
        self._trailers = trailers
        if not self.unsent_bytes:
            self._finish(trailers)

    def reset(self, code: ErrorCode) -> None:
        """End the stream at once."""
        if not self.finished:
            self.connection.reset(self.id, code)

    # Called by the connection

    def expect(self, content_bytes: int | None) -> None:
        """Set the request's content-length."""
        self._expected_bytes = content_bytes

    def receive(self, size_bytes: int) -> None:
        """Count DATA, padding included; raises StreamFailure where it exceeds the window."""
        self.received_bytes += size_bytes
        self.window_bytes -= size_bytes
        if self.window_bytes < 0:
            raise StreamFailure(ErrorCode.FLOW_CONTROL_ERROR, "more DATA than the stream's window allows")

    def receive_content(self, content: bytes) -> None:
        """Take content without its padding; raises StreamFailure for more than the content-length."""
        if self._expected_bytes is not None:
            self._expected_bytes -= len(content)
            if self._expected_bytes < 0:
                raise StreamFailure(ErrorCode.PROTOCOL_ERROR, "more DATA than content-length says")
        if content and not self.finished:
            self.on_content(content)

    def receive_end(self) -> None:
        """Handle the end of the request; raises StreamFailure for less than the content-length."""
        if self._expected_bytes:
            raise StreamFailure(ErrorCode.PROTOCOL_ERROR, "less DATA than content-length says")
        self.ended = True
        if not self.finished:
            self.connection.out.begin(self)

    def take(self, most_bytes: int) -> Content:
        """Return the next content to send, as much as its window allows; content must wait and the window be open."""
        content = self._waiting[0]
        size = min(most_bytes, self.send_window_bytes)
        if len(content) <= size:
            self._waiting.popleft()
        else:
            view = memoryview(content)
            content, self._waiting[0] = view[:size], view[size:]
        self.send_window_bytes -= len(content)
        self.unsent_bytes -= len(content)
        return content

    def sent(self) -> None:
        """Continue after all content is out."""
        if self._trailers is not None:
            self._finish(self._trailers)
        else:
            self.on_sent()

    def _finish(self, trailers: bytes) -> None:
        if trailers:
            self.send_headers(trailers, end=True)
        elif not self.finished:
            self.connection.out.write(frame(DATA, END_STREAM, self.id))
            self.finished = True
            self.connection.finished(self)
