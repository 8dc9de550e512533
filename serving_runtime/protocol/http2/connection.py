"""HTTP/2 server connection: preface, open streams, GOAWAY (RFC 9113).

    preface + SETTINGS --> open --drain--> GOAWAY, PING --its answer--> GOAWAY(last stream) --streams done--> closed
                             `--ConnectionFailure--> GOAWAY(code) --the client closes, or 1 s--> closed

The Host handles requests: it makes the streams. `dispatch` reads incoming frames, `outbound_flow` sends content.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, cast

from serving_runtime.protocol import callers
from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.dispatch import Dispatcher
from serving_runtime.protocol.http2.frames import ConnectionFailure, ErrorCode
from serving_runtime.protocol.http2.headers.blocks import MAX_HEADER_LIST_BYTES
from serving_runtime.protocol.http2.headers.fields import Fields
from serving_runtime.protocol.http2.inbound_flow import InboundBudget
from serving_runtime.protocol.http2.limits import (
    CONNECTION_WINDOW_BYTES,
    DEAF_BYTES,
    HIGH_WATER_BYTES,
    MUCH_BYTES,
)
from serving_runtime.protocol.http2.outbound_flow import Outbound
from serving_runtime.protocol.http2.stream import Stream
from serving_runtime.protocol.http2.timeouts import Arrivals
from serving_runtime.protocol.turns import ReadTurns

_DRAIN = b"draining"
_DRAIN_ANSWER_S = 1.0
_LINGER_S = 1.0


class Host(Protocol):
    """Server of a connection.

    Attributes:
        max_streams: limit of concurrent requests of one connection; further ones are refused.
        turns: read turns of connections that send much.
    """

    max_streams: int
    turns: ReadTurns

    def interpret(self, fields: Fields, known: Any) -> Any:
        """Return a stream's view of its request's headers; the same for equal headers.

        Args:
            known: the result for headers that differ only in ids and the like; None without one.
        """
        ...

    def stream(self, connection: "Connection", stream_id: int, head: Any) -> Stream: ...

    def bears_ping(self, connection: "Connection") -> bool:
        """Return whether the client may send a ping now."""
        ...

    def add(self, connection: "Connection") -> None: ...

    def remove(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    """Speaks HTTP/2 with one client.

    Attributes:
        streams: the open ones, by number.
        on_closed: called when a stream has ended, for any reason, by its number.
        max_streams, interpret, open_stream: of the host; the last for this connection.
        last_accepted: the highest number of an accepted stream.
        inbound: grants windows beyond the default ones.
        out: outgoing frames and content.
        heard_at: the loop's time when the client last sent something.
        over: nothing more is read or begun.
        peer: the caller at the other end (protocol.callers).
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.max_streams = host.max_streams
        self.interpret = host.interpret
        self.open_stream = partial(host.stream, self)
        self.streams: dict[int, Stream] = {}
        self.on_closed: dict[int, Callable[[], None]] = {}
        self.last_accepted = frames.LAST_STREAM_ID
        self.inbound = InboundBudget()
        self.out: Outbound
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self.heard_at = self._loop.time()
        self._frames_in = Dispatcher(self)
        self._arrivals = Arrivals(self.heard_at)
        self._rest = b""
        self.peer = b""
        self.over = self._deaf = self._draining = self._turn_over = False

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's do not inherit from asyncio's
        self.peer = callers.at(transport.get_extra_info("peername"))
        self._transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        self.out = Outbound(self._transport)
        self.host.add(self)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != "h2":
            self._fail(ConnectionFailure(ErrorCode.INADEQUATE_SECURITY, "the client did not choose h2 by ALPN"))
            return
        self.out.write(
            frames.settings(
                {
                    frames.MAX_CONCURRENT_STREAMS: self.max_streams,
                    frames.MAX_HEADER_LIST_SIZE: MAX_HEADER_LIST_BYTES,
                }
            )
            + frames.window_update(0, CONNECTION_WINDOW_BYTES - frames.DEFAULT_WINDOW_BYTES)
        )

    def connection_lost(self, _error: Exception | None) -> None:
        self.over = True
        self.host.remove(self)
        self._forget_streams()

    def data_received(self, data: bytes) -> None:
        if self.over:
            return
        self.heard_at = self._loop.time()
        if self._rest:
            data = self._rest + data
        try:
            used = self._frames_in.read(data)
        except ConnectionFailure as failure:
            self._fail(failure)
            return
        self._rest = data[used:]
        if len(data) >= MUCH_BYTES and not self._turn_over:
            self._turn_over = True
            self._transport.pause_reading()
            self.host.turns.wait(self._go_on)
        if self.out.paused and not self._deaf and self.write_buffer_bytes() > DEAF_BYTES:
            self._deaf = True
            if not self._turn_over:
                self._transport.pause_reading()

    def _go_on(self) -> None:
        """Resume reading, after the turn of other connections."""
        self._turn_over = False
        if not self._deaf and not self._transport.is_closing():
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.out.paused = True

    def resume_writing(self) -> None:
        self.out.paused = False
        if self._deaf and not self._transport.is_closing():
            self._deaf = False
            if not self._turn_over:
                self._transport.resume_reading()
        self.out.pump()

    # Called by streams

    def finished(self, stream: Stream) -> None:
        """Drop a stream whose answer is complete; a client that still sends gets RST_STREAM with NO_ERROR."""
        del self.streams[stream.id]
        if self.on_closed:
            self._closed(stream.id)
        if self.inbound.holders:
            self.inbound.release(stream)
        if not stream.ended:
            self.out.write(frames.rst_stream(stream.id, ErrorCode.NO_ERROR))
            self._frames_in.opening.was_reset.append(stream.id)
        if self._draining and not self.streams:
            self._close_if_drained()

    def reset(self, stream_id: int, code: ErrorCode) -> None:
        """End a stream at once."""
        self.out.write(frames.rst_stream(stream_id, code))
        self._frames_in.opening.was_reset.append(stream_id)
        self.forget(stream_id)

    def forget(self, stream_id: int) -> None:
        """Drop a stream, and notify it."""
        stream = self.streams.pop(stream_id, None)
        if stream is None:
            return
        stream.finished = True
        if self.on_closed:
            self._closed(stream_id)
        self.out.forget(stream)
        if self.inbound.holders:
            self.inbound.release(stream)
        stream.on_gone()
        if self._draining and not self.streams:
            self._close_if_drained()

    def _closed(self, stream_id: int) -> None:
        on_closed = self.on_closed.pop(stream_id, None)
        if on_closed is not None:
            on_closed()

    # Called by the host

    def drain(self) -> None:
        """Send GOAWAY, and close when all requests are answered that the client sent before it read that."""
        if self._draining or self.over:
            return
        self._draining = True
        farewell = frames.goaway(frames.LAST_STREAM_ID, ErrorCode.NO_ERROR)
        self.out.write(farewell + frames.frame(frames.PING, 0, 0, _DRAIN))
        self._loop.call_later(_DRAIN_ANSWER_S, self.accept_no_more)

    def sweep(self, now: float) -> None:
        """End streams and connections whose client is too slow; called once a second."""
        if self.over:
            return
        frames_in = self._frames_in
        try:
            self._arrivals.look(now, frames_in.opening, list(self.streams.values()), greeted=frames_in.greeted)
        except ConnectionFailure as failure:
            self._fail(failure)

    def ping(self) -> None:
        """Send a ping; the client's answer updates `heard_at`."""
        if not self.over:
            self.out.write(frames.frame(frames.PING, 0, 0, bytes(8)))

    def write_buffer_bytes(self) -> int:
        """Return how many bytes the socket has not taken."""
        return self._transport.get_write_buffer_size()

    def abort(self) -> None:
        self._transport.abort()

    # Ends

    def bears_ping(self) -> bool:
        return self.host.bears_ping(self)

    def answered_ping(self, payload: bytes) -> None:
        """Handle the answer to a ping: a client that has read the ping has read everything before it."""
        if payload == _DRAIN and self._draining:
            self.accept_no_more()

    def accept_no_more(self) -> None:
        """Send the number of the last stream by GOAWAY, and close when no streams are left."""
        if not self.over and self.last_accepted == frames.LAST_STREAM_ID:
            self.last_accepted = self._frames_in.opening.last_id
            self.out.write(frames.goaway(self.last_accepted, ErrorCode.NO_ERROR))
            self._close_if_drained()

    def _close_if_drained(self) -> None:
        if not self.streams and self.last_accepted != frames.LAST_STREAM_ID:
            self.over = True
            self._transport.close()

    def _fail(self, failure: ConnectionFailure) -> None:
        self.over = True
        self.out.write(frames.goaway(self._frames_in.opening.last_id, failure.code, str(failure)))
        self._forget_streams()
        self._linger()

    def _linger(self) -> None:
        """Close when the client has closed, or soon: closing with unread bytes resets the connection, which can destroy
        the GOAWAY before the client has read it."""
        if self._transport.is_closing():
            return
        if self._transport.can_write_eof():  # not over TLS
            self._transport.write_eof()
        if self._deaf:
            self._deaf = False
            if not self._turn_over:
                self._transport.resume_reading()
        self._loop.call_later(_LINGER_S, self._transport.close)

    def _forget_streams(self) -> None:
        for stream_id in tuple(self.streams):
            self.forget(stream_id)
