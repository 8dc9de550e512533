"""Connection of a client: requests in, handed on one at a time, answers out in their order.

    idle --first byte--> arriving --whole, or much of it--> handed on --answered--> idle (or closed)
                             ^                                 |
                             `-- pipelined requests wait in order, unparsed beyond the first

An invalid message is answered once and ends the connection, as does an answer that comes before its request is whole:
the bytes after it cannot be interpreted.
"""

import asyncio
from collections import deque
from typing import Protocol, cast

import orjson

from serving_runtime.protocol import callers
from serving_runtime.protocol.progress import Progress
from serving_runtime.proxy.heads import BadMessage, status_line
from serving_runtime.proxy.incoming import FULL_BYTES, SLICE_BYTES, Incoming, RequestParser

JSON = b"Content-Type: application/json\r\n"

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_WRITE_GRACE_S = 30.0


class Work(Protocol):
    """A request that is being answered."""

    def body_arrived(self) -> None:
        """Take what has arrived of the body, unless nothing more is wanted."""
        ...

    def pause(self) -> None:
        """Slow down: the client reads more slowly than the answer comes."""
        ...

    def resume(self) -> None: ...
    def cancel(self) -> None:
        """Give up: the client has left, or the rest of its request is invalid."""
        ...


class Application(Protocol):
    """Answers requests."""

    def begin(self, incoming: Incoming, client: "ClientConnection") -> Work | None:
        """Answer by `client`, now or later; None where it is answered already."""
        ...


class Host(Protocol):
    """Listener of a connection.

    Attributes:
        own_headers: lines of every answer.
        draining: whether answers ask clients to close.
        now: the loop's time, updated once a second.
    """

    application: Application
    own_headers: bytes
    max_body_bytes: int
    idle_s: float
    linger_s: float
    draining: bool
    now: float

    def add(self, connection: "ClientConnection") -> None: ...
    def remove(self, connection: "ClientConnection") -> None: ...


class ClientConnection(asyncio.Protocol):
    """Speaks HTTP/1.1 with one client."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._transport: asyncio.Transport
        self._parser: RequestParser
        self._queue: deque[Incoming] = deque()  # the first one is being answered once it has begun
        self._unparsed = bytearray()
        self._begun = False
        self._work: Work | None = None
        self._answering = False  # the head of an answer is out
        self._chunked = False
        self._keep_alive = True
        self._left_bytes: int | None = None  # of the answer's body, where its length was announced
        self._ended = False  # reading has ended
        self._lingering = False
        self._reading_paused = False
        self._since = host.now
        self._progress: Progress | None = None
        self._write_paused_since: float | None = None
        self._write_buffered = 0

    @property
    def busy(self) -> bool:
        """Return whether a request is arriving or being answered."""
        return bool(self._queue or self._unparsed or self._parser.current) and not self._lingering

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's do not inherit from asyncio's
        peer = callers.at(transport.get_extra_info("peername"))
        self._parser = RequestParser(self, self._host.max_body_bytes, peer)
        self._host.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._host.remove(self)
        self._ended = True
        self._queue.clear()
        self._unparsed.clear()
        self._cancel()

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        if self._blocked:
            self._unparsed += data
        elif self._unparsed:
            self._unparsed += data
            self._parse_on()
        else:
            self._parse(data)
        self._regulate()

    def pause_writing(self) -> None:
        self._write_paused_since = self._host.now
        self._write_buffered = self._transport.get_write_buffer_size()
        if self._work is not None:
            self._work.pause()

    def resume_writing(self) -> None:
        self._write_paused_since = None
        if self._work is not None:
            self._work.resume()
        self._advance()

    # Reading

    @property
    def _blocked(self) -> bool:
        """Return whether what arrives is behind a whole request that is to be answered first."""
        return bool(self._queue) and self._queue[0].whole

    def _parse(self, data: bytes) -> None:
        """Parse until a request is whole; what is left waits for its answer."""
        view = memoryview(data)
        try:
            while view and not self._ended and not self._blocked:
                self._parser.feed(view[:SLICE_BYTES])
                view = view[SLICE_BYTES:]
        except BadMessage as error:
            self._refuse(error)
        if view and not self._ended:
            self._unparsed += view

    def _parse_on(self) -> None:
        data = bytes(self._unparsed)
        self._unparsed.clear()
        self._parse(data)

    def _regulate(self) -> None:
        """Read only while what was read has a place."""
        if self._transport.is_closing():
            return
        full = len(self._unparsed) > 0 or len(self._queue) > 1
        if self._queue and self._queue[0].held_bytes >= FULL_BYTES:
            full = True
        if full and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        elif not full and self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()

    # Called by the parser

    def on_begin(self) -> None:
        if not self._queue:
            self._since = self._host.now

    def on_head(self, incoming: Incoming) -> None:
        if not self._queue:
            self._invite(incoming)
        self._queue.append(incoming)

    def on_piece(self, incoming: Incoming) -> None:
        if not self._queue or self._queue[0] is not incoming:
            return  # pipelined: its turn comes
        if self._begun:
            if self._work is not None:
                self._work.body_arrived()
        elif incoming.ready and self._write_paused_since is None:
            self._begin(incoming)

    def _invite(self, incoming: Incoming) -> None:
        if incoming.head is not None and incoming.head.expects_continue and not incoming.received_bytes:
            self._transport.write(_CONTINUE)

    def _refuse(self, error: BadMessage) -> None:
        """Refuse what arrives, after the answers to what came before it."""
        self._ended = True
        self._unparsed.clear()
        last = self._parser.current
        self._parser.current = None
        if last is not None and self._queue and self._queue[-1] is last:
            self._queue.pop()
            if not self._queue and self._begun:  # the container has part of it
                self._cancel()
                self._begun = False
                if self._answering:
                    self._transport.close()
                    return
        refused = Incoming()
        refused.refusal = error
        self._queue.append(refused)
        if len(self._queue) == 1:
            self._begin(refused)

    # Answering

    def _begin(self, incoming: Incoming) -> None:
        self._begun = True
        self._answering = False
        if incoming.refusal is not None:
            self.refuse(incoming.refusal.status, str(incoming.refusal))
            return
        work = self._host.application.begin(incoming, self)
        if self._queue and self._queue[0] is incoming:  # else it is answered already
            self._work = work
            if work is not None and self._write_paused_since is not None:
                work.pause()

    def _cancel(self) -> None:
        work, self._work = self._work, None
        if work is not None:
            work.cancel()

    def refuse(self, status: int, message: str, headers: bytes = b"") -> None:
        """Answer with an error, in V2's form."""
        self.answer(status, JSON + headers, orjson.dumps({"error": message}))

    def answer(self, status: int, headers: bytes, body: bytes) -> None:
        """Answer at once; `headers` are whole lines."""
        self.begin_answer(status, headers, len(body))
        self.piece(body)
        self.end_answer()

    def begin_answer(self, status: int, headers: bytes, length: int | None) -> None:
        """Write the head of an answer, whose body has a length or comes in chunks."""
        if self._transport.is_closing():
            return
        incoming = self._queue[0]
        head = incoming.head
        bodiless = status in (204, 304) or (head is not None and head.method == b"HEAD")
        self._chunked = length is None and not bodiless and not (head is not None and head.http_1_0)
        self._keep_alive = (
            incoming.keep_alive
            and incoming.whole
            and (not self._host.draining or len(self._queue) > 1 or len(self._unparsed) > 0)
            and (length is not None or self._chunked or bodiless)
        )
        self._left_bytes = 0 if bodiless else length
        self._answering = True
        lines = [status_line(status), self._host.own_headers, headers]
        if length is not None and status != 204:
            lines.append(b"Content-Length: %d\r\n" % length)
        if self._chunked:
            lines.append(b"Transfer-Encoding: chunked\r\n")
        if not self._keep_alive:
            lines.append(b"Connection: close\r\n")
        lines.append(b"\r\n")
        self._transport.write(b"".join(lines))

    def piece(self, piece: bytes) -> None:
        """Write a part of the answer's body."""
        if not piece or self._transport.is_closing():
            return
        if self._left_bytes is not None:
            piece = piece[: self._left_bytes]
            self._left_bytes -= len(piece)
            self._transport.write(piece)
        elif self._chunked:
            self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        else:
            self._transport.write(piece)

    def end_answer(self) -> None:
        """End the answer; the next request's turn comes."""
        self._work = None
        if self._transport.is_closing() or not self._queue:
            return
        if self._chunked:
            self._transport.write(b"0\r\n\r\n")
        incoming = self._queue.popleft()
        self._begun = self._answering = False
        self._since = self._host.now
        if self._keep_alive:
            if self._queue or self._unparsed:
                asyncio.get_running_loop().call_soon(self._advance)
            return
        self._ended = True
        self._queue.clear()
        self._unparsed.clear()
        if incoming.whole:
            self._transport.close()
        else:
            self._linger()

    def break_answer(self) -> None:
        """End the connection in the middle of an answer, so that the client sees that it is not whole."""
        self._work = None
        self._ended = True
        if self._chunked or self._left_bytes:
            self._transport.close()
        else:
            self._transport.abort()

    def body_taken(self) -> None:
        """Read on: the application has taken what there was of the body."""
        self._regulate()

    def _linger(self) -> None:
        """Close once the client has read the answer: an early close could destroy it on its way."""
        self._lingering = True
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _advance(self) -> None:
        """Go on with what came behind an answered request."""
        if self._transport.is_closing() or self._begun or self._write_paused_since is not None:
            return
        if self._queue:
            first = self._queue[0]
            self._invite(first)
            if first.ready:
                self._begin(first)
        if self._unparsed and not self._blocked and not self._ended:
            self._parse_on()
        self._regulate()

    # Called by the listener

    def sweep(self, now: float) -> None:
        """End the connection if its client is too slow; called once a second."""
        if self._write_paused_since is not None:
            buffered = self._transport.get_write_buffer_size()
            if buffered < self._write_buffered:
                self._write_paused_since, self._write_buffered = now, buffered
            elif now - self._write_paused_since > _WRITE_GRACE_S:
                self._transport.abort()
        elif self._lingering:
            if now - self._since > self._host.linger_s:
                self._transport.close()
        elif (arriving := self._parser.current) is not None and not self._reading_paused:
            if self._progress is None or self._progress.since != self._since:
                self._progress = Progress(self._since)
            if self._progress.too_slow(now, arriving.received_bytes):
                self._refuse(BadMessage("the request did not arrive in time", 408))
        elif not self._queue and not self._unparsed and now - self._since > self._host.idle_s:
            self._transport.close()

    def close_if_idle(self, now: float, quiet_s: float) -> None:
        """Close the connection unless it is busy or was within the last `quiet_s` seconds; used while draining."""
        if not self.busy and now - self._since >= quiet_s:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()
