"""One HTTP/1.1 connection: bytes in, requests to the application one at a time, answers out in order.

    idle --first byte--> reading --complete--> answering --written--> idle (or closed)
                            ^                      |
                            `-- pipelined requests wait in order, reading pauses at MAX_PIPELINED

Nothing is allocated for a body before its length was checked; what is wrong with a message is answered once and ends
the connection, because what follows cannot be told from it.
"""

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, cast

import httptools
import numpy as np

from serving_runtime.errors import ServingError
from serving_runtime.protocol.http.limits import LINGER_S, MAX_HEADER_BYTES, MAX_PIPELINED, too_slow, write_stuck
from serving_runtime.protocol.http.message import (
    STATUS_LINES,
    Cancellable,
    Request,
    Response,
    error_response,
    text_error,
)
from serving_runtime.protocol.tensors import Buffer

if TYPE_CHECKING:
    from serving_runtime.protocol.http.listener import Listener

logger = logging.getLogger(__name__)

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_ALIGNMENT = 64
_UNKNOWN = -1


class Connection(asyncio.Protocol):
    """Speaks HTTP/1.1 with one client; `listener` holds the application, the limits and the coarse clock."""

    def __init__(self, listener: "Listener") -> None:
        self._listener = listener
        self._app = listener.application
        self._transport: asyncio.Transport
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[Request, bool]] = deque()  # complete requests and whether each keeps alive
        self._job: Cancellable | None = None
        self._answering = False
        self._keep_alive = True
        self._finished = False  # nothing more is read: the connection ends with the last answer
        self._lingering = False  # a refusal is on its way; closing before the client has read it could destroy it
        self._advancing = False
        self._reading_paused = False
        self._since = listener.now  # of the state it is in
        self._write_paused_since: float | None = None
        self._write_buffered = 0
        self._reading = False
        self.on_message_begin()
        self._reading = False

    @property
    def busy(self) -> bool:
        """Return whether a request is being read or answered."""
        return self._answering or bool(self._waiting) or (self._reading and not self._lingering)

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are of no class of asyncio's
        self._listener.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._listener.remove(self)
        self._finished = True
        self._waiting.clear()
        if self._job is not None:
            self._job.cancel()
            self._job = None

    def data_received(self, data: bytes) -> None:
        if self._finished:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # offered, not required: the request is answered as plain HTTP/1.1
            self._finished = True
            self._advance()
            return
        except httptools.HttpParserError as error:
            self._refuse(text_error(400, f"the request is not valid HTTP/1.1: {error}"))
            return
        if self._in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self._refuse(text_error(431, f"the request's headers are larger than {MAX_HEADER_BYTES} bytes"))

    def pause_writing(self) -> None:
        self._write_paused_since = self._listener.now
        self._write_buffered = self._transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        self._write_paused_since = None
        self._advance()

    # What httptools calls

    def on_message_begin(self) -> None:
        self._reading = True
        self._in_headers = True
        self._header_bytes = 0
        self._target = b""
        self._content_length = _UNKNOWN
        self._json_length: int | None = None
        self._expects_continue = False
        self._refusal: Response | None = None
        self._body: Buffer = b""
        self._body_offset = 0
        self._received = 0
        if not self._answering:
            self._since = self._listener.now

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"content-length":
            self._content_length = int(value)  # the parser let digits only through
        elif name == b"inference-header-content-length":
            if value.isdigit() and len(value) < 20:
                self._json_length = int(value)
            else:
                self._refusal = text_error(400, "Inference-Header-Content-Length must be a number of bytes")
        elif name == b"expect":
            if value.lower() == b"100-continue":
                self._expects_continue = True
            else:
                self._refusal = text_error(417, "the only expectation supported is 100-continue")
        elif name == b"content-encoding" and value.lower() != b"identity":
            self._refusal = text_error(415, "compressed request bodies are not supported; send the body as it is")

    def on_headers_complete(self) -> None:
        self._in_headers = False
        limit = self._listener.limits.max_body_bytes
        if self._content_length > limit:
            self._refusal = text_error(413, f"the request body is larger than {limit} bytes")
        if self._refusal is not None:
            self._finish_reading()
        elif self._expects_continue and not self._answering:
            self._transport.write(_CONTINUE)
            self._expects_continue = False

    def on_body(self, body: bytes) -> None:
        if self._finished:
            return
        received = self._received + len(body)
        if received == self._content_length and not self._received:  # the usual case: it came in one piece
            self._body = body
        elif self._content_length != _UNKNOWN:
            self._place(body)
        elif received > self._listener.limits.max_body_bytes:
            limit = self._listener.limits.max_body_bytes
            self._refusal = text_error(413, f"the request body is larger than {limit} bytes")
            self._finish_reading()
            return
        else:
            if not self._received:
                self._body = bytearray()
            self._body += body  # type: ignore[operator]
        self._received = received

    def on_message_complete(self) -> None:
        if self._finished:
            return
        self._reading = False
        parser = self._parser
        keep_alive = parser.should_keep_alive() and parser.get_http_version() != "1.0"
        request = Request(parser.get_method(), self._target, self._body, self._body_offset, self._json_length)
        self._body = b""
        if self._answering or self._waiting or self._write_paused_since is not None:
            self._waiting.append((request, keep_alive))
            if len(self._waiting) >= MAX_PIPELINED and not self._reading_paused:
                self._reading_paused = True
                self._transport.pause_reading()
        else:
            self._start(request, keep_alive)

    # Answering

    def _start(self, request: Request, keep_alive: bool) -> None:
        self._answering = True
        self._keep_alive = keep_alive
        reply = self._reply
        if request.method == b"HEAD":
            request, reply = request._replace(method=b"GET"), self._reply_head
        try:
            self._job = self._app.handle(request, reply)
        except ServingError as error:
            reply(error_response(error))
        except Exception:  # a mistake of ours: the client is told so, the log has the rest, the others are served
            logger.exception("answering %s %r failed", request.method.decode("latin-1"), request.target[:200])
            reply(text_error(500, "internal error"))
        else:
            if not self._answering:
                self._job = None

    def _reply(self, response: Response) -> None:
        self._job = None
        keep_alive = self._keep_alive and (bool(self._waiting) or not self._listener.draining)
        status, headers, chunks, length = response
        ending = b"Content-Length: %d\r\n\r\n" if keep_alive else b"Connection: close\r\nContent-Length: %d\r\n\r\n"
        self._transport.write(b"".join((STATUS_LINES[status], headers, ending % length, *chunks)))
        self._answering = False
        self._since = self._listener.now
        if not keep_alive:
            self._finished = True
            self._waiting.clear()
            self._transport.close()
        elif self._waiting or self._refusal is not None or self._expects_continue or self._finished:
            self._advance()

    def _reply_head(self, response: Response) -> None:
        """Answer HEAD as GET without its body, which the client would take for the answer to its next request."""
        self._reply(response._replace(chunks=()))

    def _advance(self) -> None:
        """Go on with what waited behind an answer: pipelined requests, a 100-continue, a refusal."""
        if self._advancing:  # called from an answer given at once: the loop below goes on
            return
        self._advancing = True
        while self._waiting and not self._answering and self._write_paused_since is None:
            self._start(*self._waiting.popleft())
        self._advancing = False
        if self._reading_paused and len(self._waiting) < MAX_PIPELINED and not self._transport.is_closing():
            self._reading_paused = False
            self._transport.resume_reading()
        if self._answering or self._waiting or self._transport.is_closing():
            return
        if self._refusal is not None:
            self._finish_reading()
        elif self._finished and not self._lingering:
            self._transport.close()
        elif self._expects_continue and not self._in_headers:
            self._transport.write(_CONTINUE)
            self._expects_continue = False

    def _refuse(self, response: Response) -> None:
        self._refusal = response
        self._finish_reading()

    def _finish_reading(self) -> None:
        """Answer a message that cannot be accepted, after those before it, and end the connection."""
        self._finished = True
        if self._answering or self._waiting or self._refusal is None:
            return
        response, self._refusal = self._refusal, None
        status, headers, chunks, length = response
        head = b"%sConnection: close\r\nContent-Length: %d\r\n\r\n" % (STATUS_LINES[status] + headers, length)
        self._transport.write(b"".join((head, *chunks)))
        self._lingering = True
        self._since = self._listener.now
        self._transport.write_eof()

    def _place(self, body: bytes) -> None:
        """Put a piece of the body into one buffer, in which the first tensor comes to lie on an aligned address."""
        if not self._received:
            json_length = min(self._json_length or 0, self._content_length)
            self._body_offset = -json_length % _ALIGNMENT
            storage = np.empty(self._body_offset + self._content_length, dtype=np.uint8)
            self._body = storage.data
        start = self._body_offset + self._received
        self._body[start : start + len(body)] = body  # type: ignore[index]

    # What the listener calls

    def sweep(self, now: float) -> None:
        """End the connection if its client is too slow, once a second."""
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
        elif self._reading:
            if too_slow(now - self._since, self._received):
                self._refuse(text_error(408, "the request did not arrive in time"))
        elif now - self._since > self._listener.limits.idle_timeout_s:
            self._transport.close()

    def close_if_idle(self, now: float, quiet_s: float) -> None:
        """Close the connection unless it is busy or was within the last `quiet_s` seconds; used while draining."""
        if not self.busy and now - self._since >= quiet_s:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()
