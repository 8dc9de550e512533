"""HTTP/1.1 protocol of the web server with time limits for slow clients: uvicorn's on httptools, which has none.

    connected -> HEAD -> BODY -> WAITING (the application responds) -> uvicorn's keep-alive -> HEAD ...

A head must be complete within `HEAD_S` of its first byte (the first one: of the connection) and has at most
`HEAD_BYTES`; a body must bring bytes at least every `BODY_IDLE_S` while the server reads it. Other connections end.

    uvicorn --http control_plane.http_protocol:HttpProtocol
"""

from asyncio import TimerHandle, Transport
from enum import Enum
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_S = 20.0
BODY_IDLE_S = 60.0
HEAD_BYTES = 64 * 1024
_TIMEOUT = "408 Request Timeout"
_TOO_LARGE = "431 Request Header Fields Too Large"


class _State(Enum):
    HEAD = 1
    BODY = 2
    WAITING = 3


class HttpProtocol(HttpToolsProtocol):
    """One connection; uvicorn makes it."""

    _state = _State.WAITING
    _timer: TimerHandle | None = None
    _head_bytes = 0
    flow: FlowControl

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse `data`, and see whether the head stays within its limit."""
        if self._state is _State.BODY:
            self._start_timer(BODY_IDLE_S)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._state is _State.HEAD:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._end(_TOO_LARGE)
        elif self._state is _State.WAITING and (self.cycle is None or self.cycle.response_complete):
            self._begin_head()  # bytes that begin no message, such as blank lines, have stopped the keep-alive timer

    def on_message_begin(self) -> None:
        """Begin the head, unless the connection's own limit for it runs already."""
        super().on_message_begin()
        if self._state is not _State.HEAD:
            self._begin_head()

    def on_headers_complete(self) -> None:
        """End the head; what follows is the body."""
        self._state = _State.BODY
        self._start_timer(BODY_IDLE_S)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the body; the application has the time it takes."""
        self._state = _State.WAITING
        self._stop_timer()
        super().on_message_complete()

    def _begin_head(self) -> None:
        self._state, self._head_bytes = _State.HEAD, 0
        self._start_timer(HEAD_S)

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        if self.flow.read_paused:
            self._start_timer(BODY_IDLE_S)  # the server is slow: it reads a body, or responds to an earlier request
        else:
            self._end(_TIMEOUT)

    def _end(self, status: str) -> None:
        """Close the connection, with a status where no response has begun."""
        self._stop_timer()
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            head = f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode("ascii"))
        self.transport.close()
