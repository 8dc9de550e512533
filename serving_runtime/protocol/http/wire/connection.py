"""HTTP/1.1 connection: bytes in, requests to the application one at a time, answers out in order.

    idle --first byte--> reading --complete--> answering --written--> idle (or closed)
                            ^                      |
                            `-- pipelined requests wait in order, reading pauses at MAX_PIPELINED

An invalid message is answered once and ends the connection, because the bytes after it cannot be interpreted. An answer
in pieces (BodySource) holds the connection until its last piece is written.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Protocol, cast

import httptools

from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable
from serving_runtime.protocol import callers
from serving_runtime.protocol.caller_limit import TooManyRequests, UnansweredRequests
from serving_runtime.protocol.http.wire import large_body, response_writer
from serving_runtime.protocol.http.wire.inflation import inflate
from serving_runtime.protocol.http.wire.limits import (
    LINGER_S,
    MAX_HEADER_BYTES,
    MAX_PIPELINED,
    MUCH_BYTES,
    HttpLimits,
    write_stuck,
)
from serving_runtime.protocol.http.wire.message import (
    Application,
    BodySource,
    Reply,
    Request,
    Response,
    error_response,
    text_error,
)
from serving_runtime.protocol.http.wire.reader import KeepsHeader, RequestReader
from serving_runtime.protocol.http.wire.response_writer import CONTINUE, BodyWriter
from serving_runtime.protocol.progress import Progress
from serving_runtime.protocol.request_memory import LARGE_REQUEST_BYTES, RequestMemory
from serving_runtime.protocol.turns import ReadTurns

logger = logging.getLogger(__name__)


class Host(Protocol):
    """Server of a connection: the application, the limits and the coarse clock.

    Attributes:
        begun: beginnings of answers, by status.
        draining: whether answers request clients to close.
        now: the loop's time, updated once a second.
    """

    application: Application
    begun: Mapping[int, bytes]
    draining: bool
    keeps_header: KeepsHeader | None
    limits: HttpLimits
    memory: RequestMemory
    now: float
    turns: ReadTurns
    unanswered: UnansweredRequests

    def add(self, connection: "Connection") -> None: ...

    def remove(self, connection: "Connection") -> None: ...

    def discard_delay_s(self) -> float:
        """Return how long a connection waits before its next discarding read."""
        ...


class Connection(asyncio.Protocol):
    """Speaks HTTP/1.1 with one client."""

    def __init__(self, listener: Host) -> None:
        self._listener = listener
        self._app = listener.application
        self._begun = listener.begun
        self._transport: asyncio.Transport
        self._memory = listener.memory
        self._held_bytes = 0  # of the request that is being answered
        self._counted: bytes | None = None  # its caller, where it is counted among unanswered requests
        self._reader = RequestReader(self, listener.limits, listener.keeps_header, listener.memory)
        self._progress: Progress | None = None
        self._waiting: deque[tuple[Request, bool, int]] = deque()  # complete, whether each keeps alive, what it holds
        self._refusal: Response | None = None  # of the message behind them
        self._job: Cancellable | None = None
        self._source: BodySource | None = None
        self._answering = False
        self._keep_alive = True
        self._accept_encoding = b""
        self._chunked = True
        self._finished = False  # reading has ended: the connection ends with the last answer
        self._lingering = False  # a refusal is being sent; closing before the client has read it could destroy it
        self._advancing = False
        self._reading_paused = False
        self._turn_over = False  # reading resumes soon
        self._large = False  # LargeBody reads the arriving body
        self._since = listener.now  # when its state began
        self._write_paused_since: float | None = None
        self._write_buffered = 0

    def serve(self, application: Application, keeps_header: KeepsHeader | None) -> None:
        """Answer requests that have not begun yet by another application."""
        self._app = application
        self._reader.keep(keeps_header)

    @property
    def busy(self) -> bool:
        """Return whether a request is being read or answered."""
        return self._answering or bool(self._waiting) or (self._reader.reading and not self._lingering)

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's do not inherit from asyncio's
        self._reader.peer = callers.at(transport.get_extra_info("peername"))
        self._listener.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._listener.remove(self)
        self._finished = True
        self._forget_waiting()
        self._reader.leave()
        self._release()
        if self._job is not None:
            self._job.cancel()
            self._job = None

    def data_received(self, data: bytes) -> None:
        if self._finished:
            if self._lingering:
                self._pause(self._listener.discard_delay_s())
            return
        reader = self._reader
        try:
            reader.feed(data)
        except httptools.HttpParserUpgrade:  # offered, not required: the request is answered as plain HTTP/1.1
            self._finished = True
            self._advance()
            return
        except httptools.HttpParserError as error:
            self.on_refusal(text_error(400, f"the request is not valid HTTP/1.1: {error}"))
            return
        if reader.reading:
            self._await_more(reader, len(data))
        if len(data) >= MUCH_BYTES:
            self.take_turns()

    def pause_writing(self) -> None:
        self._write_paused_since = self._listener.now
        self._write_buffered = self._transport.get_write_buffer_size()
        if self._source is not None:
            self._source.pause()

    def resume_writing(self) -> None:
        self._write_paused_since = None
        if self._source is not None:
            self._source.resume()
        self._advance()

    def take_turns(self) -> None:
        """Stop reading until other connections had their turn: the loop would go on with one that sends without end."""
        self._pause()

    def _pause(self, seconds: float = 0) -> None:
        """Stop reading until this connection's turn, no earlier than after so many seconds."""
        if self._reading_paused or self._turn_over:
            return
        self._turn_over = True
        self._transport.pause_reading()
        turns = self._listener.turns
        if seconds > 0:
            asyncio.get_running_loop().call_later(seconds, turns.wait, self._go_on)
        else:
            turns.wait(self._go_on)

    def _go_on(self) -> None:
        self._turn_over = False
        if not self._reading_paused and not self._transport.is_closing():
            self._transport.resume_reading()

    def _await_more(self, reader: RequestReader, received: int) -> None:
        """Continue with an incomplete request."""
        if reader.received_bytes == reader.noted_bytes:
            reader.header_bytes += received
            if reader.header_bytes > MAX_HEADER_BYTES:
                self.on_refusal(text_error(431, f"the request's headers are larger than {MAX_HEADER_BYTES} bytes"))
                return
        else:
            reader.noted_bytes, reader.header_bytes = reader.received_bytes, 0
        if reader.bytes_to_come >= large_body.WORTH_BYTES:
            self._large = True
            self._transport.set_protocol(large_body.LargeBody(self, reader, self._body_arrived, self.take_turns))
            self.take_turns()

    def _body_arrived(self) -> None:
        self._large = False
        self._transport.set_protocol(self)
        self._reader.end_body()

    # Called by the reader

    def on_request_begun(self) -> None:
        if not self._answering:
            self._since = self._listener.now

    def on_body_awaited(self) -> None:
        if self._reader.expects_continue and not self._answering:
            self._invite()

    def on_request(self, request: Request, keep_alive: bool) -> None:
        if self._finished:
            return
        memory, reader = self._memory, self._reader
        held_bytes = len(request.body)
        memory.held_bytes += held_bytes
        if held_bytes > LARGE_REQUEST_BYTES or reader.held_bytes:
            cost = _cost(request, memory)
            memory.held_bytes += cost - held_bytes - reader.held_bytes  # pieces are counted already
            held_bytes, reader.held_bytes = cost, 0
        if memory.held_bytes > memory.limit_bytes and memory.held_bytes > held_bytes:
            memory.held_bytes -= held_bytes
            self.on_refusal(error_response(memory.refusal()))
            return
        if self._answering or self._waiting or self._write_paused_since is not None:
            self._waiting.append((request, keep_alive, held_bytes))
            if len(self._waiting) >= MAX_PIPELINED and not self._reading_paused:
                self._reading_paused = True
                if not self._turn_over:
                    self._transport.pause_reading()
        else:
            self._start(request, keep_alive, held_bytes)

    def on_refusal(self, response: Response) -> None:
        """Answer a message that cannot be accepted, after those before it, and end the connection."""
        if self._finished:
            return
        self._refusal = response
        self._finished = True
        self._reader.leave()
        if self._large:  # the rest of its body is read and discarded here
            self._large = False
            self._transport.set_protocol(self)
        if not (self._answering or self._waiting):
            self._end_with(response)

    # Answering

    def _start(self, request: Request, keep_alive: bool, held_bytes: int) -> None:
        self._answering = True
        self._held_bytes = held_bytes
        self._keep_alive = keep_alive
        self._accept_encoding = request.accept_encoding
        self._chunked = not request.http_1_0
        reply = self._reply
        if request.method == b"HEAD":
            request, reply = request._replace(method=b"GET"), self._reply_head
        if request.caller_limit:
            try:
                self._listener.unanswered.enter(request.caller, request.caller_limit)
            except TooManyRequests as error:
                reply(error_response(error))
                return
            self._counted = request.caller
        if request.window_bits is None:
            self._hand_over(request, reply)
        else:
            most_bytes = self._listener.limits.max_body_bytes
            later = inflate(
                request, most_bytes, self._hold, self._memory.json_cost, lambda plain: self._hand_over(plain, reply)
            )
            if later is not None:
                self._job = later

    def _hand_over(self, request: Request | Response, reply: Reply) -> None:
        """Pass a request to the application; a response in its place is the last one of this connection."""
        self._job = None
        if isinstance(request, Response):
            self._keep_alive = False
            self._memory.drop(self._held_bytes)
            self._held_bytes = 0
            self._write(request)
            return
        try:
            self._job = self._app.handle(request, reply)
        except ServingError as error:
            reply(error_response(error))
        except Exception:  # a bug: the client gets an error, the log the details; other requests go on
            logger.exception("answering %s %r failed", request.method.decode("latin-1"), request.target[:200])
            reply(text_error(500, "internal error"))
        else:
            if not self._answering:
                self._job = None

    def _reply(self, response: Response) -> None:
        if self._transport.is_closing():  # the client left during rendering
            return
        if response.source is not None:
            self._reply_in_pieces(response, response.source)
        elif self._accept_encoding and response_writer.compressible(response):
            self._reply_compressed(response)
        else:
            self._write(response)

    def _write(self, response: Response) -> None:
        self._job = None
        keep_alive = self._keeps_alive()
        response_writer.write(self._transport, self._begun, response, keep_alive=keep_alive)
        self._answered(keep_alive)

    def _keeps_alive(self) -> bool:
        """Return whether the connection goes on after the next answer; waiting requests are answered first."""
        return self._keep_alive and (bool(self._waiting) or not self._listener.draining)

    def _hold(self, size_bytes: int) -> None:
        """Count more bytes for the request that is being answered; raises TooMuchUnfinished."""
        self._held_bytes += size_bytes
        self._memory.held_bytes += size_bytes
        self._memory.check(self._held_bytes)

    def _release(self) -> None:
        self._memory.held_bytes -= self._held_bytes
        self._held_bytes = 0
        if self._counted is not None:
            self._leave(self._counted)

    def _leave(self, caller: bytes) -> None:
        self._counted = None
        self._listener.unanswered.leave(caller)

    def _forget_waiting(self) -> None:
        for _, _, held_bytes in self._waiting:
            self._memory.held_bytes -= held_bytes
        self._waiting.clear()

    def _answered(self, keep_alive: bool) -> None:
        self._answering = False
        self._memory.held_bytes -= self._held_bytes
        self._held_bytes = 0
        if self._counted is not None:
            self._leave(self._counted)
        self._since = self._listener.now
        if not keep_alive:
            self._finished = True
            self._forget_waiting()
            self._transport.close()
        elif self._waiting or self._finished or self._reader.expects_continue:
            self._advance()

    def _reply_head(self, response: Response) -> None:
        """Answer HEAD like GET without its body, which the client would take for the answer to its next request."""
        self._write(response._replace(chunks=()))

    def _reply_compressed(self, response: Response) -> None:
        """Answer once the body is compressed, in a thread where that takes long."""
        self._job = None

        def write(compressed: Response) -> None:
            if not self._transport.is_closing():
                self._write(compressed)

        response_writer.compressed(response, self._accept_encoding, write)

    def _reply_in_pieces(self, response: Response, source: BodySource) -> None:
        keep_alive = self._keeps_alive()
        self._source = source
        self._transport.write(
            response_writer.head_of_pieces(self._begun, response, keep_alive=keep_alive, chunked=self._chunked)
        )

        def ended() -> None:
            self._source = self._job = None
            self._answered(keep_alive)

        source.begin(BodyWriter(self._transport, ended, chunked=self._chunked))

    def _advance(self) -> None:
        """Continue with what waited behind an answer: pipelined requests, a 100-continue, a refusal."""
        if self._advancing:  # called within an immediate answer: the loop below goes on
            return
        self._advancing = True
        while self._waiting and not self._answering and self._write_paused_since is None:
            self._start(*self._waiting.popleft())
        self._advancing = False
        if self._reading_paused and len(self._waiting) < MAX_PIPELINED and not self._transport.is_closing():
            self._reading_paused = False
            if not self._turn_over:
                self._transport.resume_reading()
        if self._answering or self._waiting or self._transport.is_closing() or self._lingering:
            return
        if self._refusal is not None:
            self._end_with(self._refusal)
        elif self._finished:
            self._transport.close()
        elif self._reader.expects_continue and not self._reader.in_headers:
            self._invite()

    def _invite(self) -> None:
        self._transport.write(CONTINUE)
        self._reader.expects_continue = False

    def _end_with(self, refusal: Response) -> None:
        self._transport.write(response_writer.whole(self._begun, refusal, keep_alive=False))
        self._refusal = None
        self._lingering = True
        self._since = self._listener.now
        if self._transport.can_write_eof():  # not over TLS
            self._transport.write_eof()

    # Called by the listener

    def sweep(self, now: float) -> None:
        """End the connection if its client is too slow; called once a second."""
        if self._write_paused_since is not None:
            buffered = self._transport.get_write_buffer_size()
            if buffered < self._write_buffered:
                self._write_paused_since, self._write_buffered = now, buffered
            elif write_stuck(now - self._write_paused_since):
                self._transport.abort()
        elif self._lingering:
            if now - self._since > LINGER_S:
                self._transport.close()
        elif self._answering or self._waiting:
            return
        elif self._reader.reading:
            if self._progress is None or self._progress.since != self._since:
                self._progress = Progress(self._since)
            if self._progress.too_slow(now, self._reader.received_bytes):
                self.on_refusal(text_error(408, "the request did not arrive in time"))
        elif now - self._since > self._listener.limits.idle_timeout_s:
            self._transport.close()

    def close_if_idle(self, now: float, quiet_s: float) -> None:
        """Close the connection unless it is busy or was within the last `quiet_s` seconds; used while draining."""
        if not self.busy and now - self._since >= quiet_s:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


def _cost(request: Request, memory: RequestMemory) -> int:
    """Return the bytes counted for a request until it is answered."""
    size = len(request.body)
    return memory.json_cost(size) if size > LARGE_REQUEST_BYTES and request.json_length is None else size
