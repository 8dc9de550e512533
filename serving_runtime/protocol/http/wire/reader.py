"""HTTP/1.1 request reader: builds one request at a time from httptools' events.

A connection owns one reader; httptools calls the `on_*` methods, the reader passes complete requests to its owner.
Known heads bypass httptools.
Nothing is allocated for a body before its length, and the room for it, are checked.
"""

import re
from collections.abc import Callable
from typing import Protocol

import httptools
import numpy as np

from serving_runtime.protocol import caller_limit, callers
from serving_runtime.protocol.http.wire.compression import BadCompression, window_bits
from serving_runtime.protocol.http.wire.head_reuse import KnownHeads
from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.message import Request, Response, error_response, text_error
from serving_runtime.protocol.request_memory import LARGE_REQUEST_BYTES, RequestMemory
from serving_runtime.protocol.tensors.binary import Buffer

_ALIGNMENT = 64
_LONGEST_READ_BYTES = 512 * 1024
"""Piece of a body per read: other connections have their turn in between."""

_UNKNOWN = -1
_ABSOLUTE = re.compile(rb"https?://([^/?#]+)([^#]*)", re.IGNORECASE)

KeepsHeader = Callable[[bytes], bool]
"""Whether an application keeps a header, by its name as sent, beside those that HTTP itself needs."""


def either(one: KeepsHeader | None, other: KeepsHeader) -> KeepsHeader:
    """Return a filter that keeps the headers of both."""
    return other if one is None else lambda name: one(name) or other(name)


class Owner(Protocol):
    """A reader's callbacks to its connection."""

    def on_request_begun(self) -> None: ...
    def on_body_awaited(self) -> None:
        """Note that the headers are complete and valid, the body is not yet."""
        ...

    def on_request(self, request: Request, keep_alive: bool) -> None: ...
    def on_refusal(self, response: Response) -> None:
        """Note that the request cannot be accepted; later bytes on the connection cannot be interpreted."""
        ...


class RequestReader:
    """State of the request that is being read.

    Attributes:
        reading: whether a request has begun and is not complete.
        in_headers: whether its headers are not complete.
        header_bytes: received bytes outside the body: head, trailers, chunks' extensions; counted by pieces.
        noted_bytes: received body at the last piece.
        received_bytes: of its body, as sent.
        held_bytes: of its body, counted in the memory of all requests: only bodies that arrive in pieces are.
        expects_continue: the client waits for 100-continue before it sends the body.
        peer: the caller of requests whose headers name none.
    """

    def __init__(
        self, owner: Owner, limits: HttpLimits, keeps_header: KeepsHeader | None, memory: RequestMemory | None = None
    ) -> None:
        self._owner = owner
        self._memory = memory if memory is not None else RequestMemory()
        self._max_body_bytes = limits.max_body_bytes
        self._keeps_header = keeps_header
        self._known = KnownHeads(min(limits.max_body_bytes, LARGE_REQUEST_BYTES))
        self.peer = b""
        self._whole: Request | None = None  # the last request in the data being fed, whose head may recur
        self._parser = httptools.HttpRequestParser(self)
        self._begin()
        self.reading = False

    def feed(self, data: bytes) -> None:
        """Process received data; raises HttpParserError and HttpParserUpgrade."""
        if self.reading:
            self._parser.feed_data(data)
            self._whole = None
            return
        request = self._known.request_in(data)
        if request is not None:
            self._owner.on_request_begun()
            self._owner.on_request(request, True)
            return
        self._parser.feed_data(data)
        whole, self._whole = self._whole, None
        if whole is not None and not self.reading:
            self._known.learn(data, self._content_length, whole)

    def keep(self, keeps_header: KeepsHeader | None) -> None:
        """Change the headers that requests carry which have not begun yet."""
        self._keeps_header = keeps_header
        self._known.clear()
        self._whole = None

    def _begin(self) -> None:
        self.reading = True
        self.in_headers = True
        self.header_bytes = self.noted_bytes = 0
        self.received_bytes = self.held_bytes = 0
        self.expects_continue = False
        self._target = b""
        self._hosts = self._codings = 0
        self._content_length = _UNKNOWN
        self._json_length: int | None = None
        self._accept_encoding = b""
        self._headers: list[tuple[bytes, bytes]] | None = None
        self._names: dict[bytes, bytes] | None = None  # headers of the caller and its limit
        self._window_bits: int | None = None
        self._refusal: Response | None = None
        self._refused = False
        self._body: Buffer = b""
        self._body_offset = 0

    def leave(self) -> None:
        """Drop the received part of an unfinished request: the garbage collector may be late."""
        self._body = b""
        self._known.clear()
        self._whole = None
        if self.held_bytes:
            self._memory.drop(self.held_bytes)
            self.held_bytes = 0

    # Called by httptools

    def on_message_begin(self) -> None:
        self._begin()
        self._owner.on_request_begun()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.in_headers:  # a trailer, which must not pass for a header (RFC 9110, section 6.5.1)
            return
        take = _TAKEN.get(name.lower())
        if take is not None:
            take(self, value)
        if self._keeps_header is not None and self._keeps_header(name):
            if self._headers is None:
                self._headers = []
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.in_headers = False
        if not self._target.startswith(b"/"):
            self._take_absolute_form()
        if self._hosts != 1:
            self._check_host()
        if self._content_length > self._max_body_bytes:
            self._refusal = self._too_large()
        elif self._content_length > LARGE_REQUEST_BYTES and self._memory.lacks(self._content_length):
            self._refusal = error_response(self._memory.refusal())
        if self._refusal is not None:
            self._refuse(self._refusal)
        else:
            self._owner.on_body_awaited()

    def on_body(self, body: bytes) -> None:
        if self._refused:
            return
        received = self.received_bytes + len(body)
        if received == self._content_length and not self.received_bytes:  # the usual case: one piece
            self._body = body
        elif received > self._max_body_bytes:
            self._refuse(self._too_large())
            return
        elif self._hold(len(body)):
            if self._content_length != _UNKNOWN:
                self._place(body)
            else:
                if not self.received_bytes:
                    self._body = bytearray()
                self._body += body  # type: ignore[operator]
        self.received_bytes = received

    def _hold(self, size_bytes: int) -> bool:
        """Count more bytes of the body; returns whether there is room for it, else the request is refused."""
        self.held_bytes += size_bytes
        memory = self._memory
        memory.held_bytes += size_bytes
        if memory.held_bytes <= memory.arriving_limit_bytes or memory.held_bytes <= self.held_bytes:
            return True
        self._refuse(error_response(memory.refusal()))
        return False

    def on_message_complete(self) -> None:
        if self._refused:
            return
        self.reading = self.expects_continue = False
        parser = self._parser
        http_1_0 = parser.get_http_version() == "1.0"
        keep_alive = parser.should_keep_alive() and not http_1_0
        request = Request(
            parser.get_method(), self._target, self._body, self._body_offset, self._json_length, self._accept_encoding,
            caller=self.peer if self._names is None else callers.named(self._names) or self.peer,
        )  # fmt: skip
        if self._headers is not None or http_1_0:
            request = request._replace(headers=tuple(self._headers or ()), http_1_0=http_1_0)
        if self._names is not None and caller_limit.HEADER in self._names:
            request = request._replace(caller_limit=caller_limit.sent(self._names))
        if self._window_bits is not None:
            request = request._replace(window_bits=self._window_bits)
        elif keep_alive and self._content_length == self.received_bytes:
            self._whole = request
        if not keep_alive:  # the parser accepts nothing after it
            self._known.clear()
        self._body = b""
        self._owner.on_request(request, keep_alive)

    # Bodies that bypass httptools

    @property
    def bytes_to_come(self) -> int:
        """Return how many bytes of the body are missing; 0 where only httptools knows, or after a refusal."""
        if self.in_headers or self._refused or self._content_length == _UNKNOWN:
            return 0
        return self._content_length - self.received_bytes

    def room(self) -> memoryview:
        """Return the buffer for the next part of the body; there must be `bytes_to_come`."""
        if not self.received_bytes:
            self._make_room()
        begin = self._body_offset + self.received_bytes
        return self._body[begin : begin + _LONGEST_READ_BYTES]  # type: ignore[return-value]

    def filled(self, count: int) -> bool:
        """Note bytes written into `room`; returns whether the body is complete: call `end_body` then."""
        self.received_bytes += count
        return self._hold(count) and self.received_bytes == self._content_length

    def end_body(self) -> None:
        """End the request whose body is complete; a new parser reads the next one."""
        self.on_message_complete()
        self._whole = None
        self._parser = httptools.HttpRequestParser(self)

    # Headers

    def _take_content_length(self, value: bytes) -> None:
        self._content_length = int(value)  # the parser lets only digits through

    def _take_host(self, _value: bytes) -> None:
        self._hosts += 1

    def _take_transfer_encoding(self, value: bytes) -> None:
        self._codings += 1
        if self._codings > 1 or value.lower() != b"chunked":
            self._refusal = text_error(400, "the only Transfer-Encoding supported is chunked")

    def _take_absolute_form(self) -> None:
        """Split an absolute-form target, as sent to proxies, into path and host (RFC 9112, section 3.2.2)."""
        found = _ABSOLUTE.fullmatch(self._target)
        if found is None:
            return
        host, rest = found.groups()
        self._target = rest if rest.startswith(b"/") else b"/" + rest
        if self._headers is not None:
            self._headers = [(name, host if name.lower() == b"host" else value) for name, value in self._headers]

    def _check_host(self) -> None:
        """Refuse requests without exactly one Host header (RFC 9112, section 3.2); HTTP/1.0 may omit it."""
        if self._hosts or self._parser.get_http_version() != "1.0":
            self._refusal = self._refusal or text_error(400, f"HTTP/1.1 needs one Host header, not {self._hosts}")

    def _take_json_length(self, value: bytes) -> None:
        if value.isdigit() and len(value) < 20:
            self._json_length = int(value)
        else:
            self._refusal = text_error(400, "Inference-Header-Content-Length must be a number of bytes")

    def _take_expect(self, value: bytes) -> None:
        if value.lower() == b"100-continue":
            self.expects_continue = True
        else:
            self._refusal = text_error(417, "the only expectation supported is 100-continue")

    def _take_content_encoding(self, value: bytes) -> None:
        try:
            self._window_bits = window_bits(value)
        except BadCompression as error:
            self._refusal = text_error(415, str(error))

    def _take_accept_encoding(self, value: bytes) -> None:
        self._accept_encoding = value

    def _take_caller(self, name: bytes, value: bytes) -> None:
        if self._names is None:
            self._names = {}
        self._names[name] = value

    # Bodies

    def _place(self, body: bytes) -> None:
        """Put a piece of the body into one buffer, with the first tensor at an aligned address."""
        if not self.received_bytes:
            self._make_room()
        start = self._body_offset + self.received_bytes
        self._body[start : start + len(body)] = body  # type: ignore[index]

    def _make_room(self) -> None:
        json_length = min(self._json_length or 0, self._content_length)
        self._body_offset = -json_length % _ALIGNMENT
        storage = np.empty(self._body_offset + self._content_length, dtype=np.uint8)
        self._body = storage.data

    def _too_large(self) -> Response:
        return text_error(413, f"the request body is larger than {self._max_body_bytes} bytes")

    def _refuse(self, response: Response) -> None:
        self._refused = True
        self._owner.on_refusal(response)


_TAKEN: dict[bytes, Callable[[RequestReader, bytes], None]] = {
    b"host": RequestReader._take_host,
    b"transfer-encoding": RequestReader._take_transfer_encoding,
    b"content-length": RequestReader._take_content_length,
    b"inference-header-content-length": RequestReader._take_json_length,
    b"expect": RequestReader._take_expect,
    b"content-encoding": RequestReader._take_content_encoding,
    b"accept-encoding": RequestReader._take_accept_encoding,
    callers.CALLER: lambda reader, value: reader._take_caller(callers.CALLER, value),
    callers.ISSUER: lambda reader, value: reader._take_caller(callers.ISSUER, value),
    callers.SUBJECT: lambda reader, value: reader._take_caller(callers.SUBJECT, value),
    caller_limit.HEADER: lambda reader, value: reader._take_caller(caller_limit.HEADER, value),
}
