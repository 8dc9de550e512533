"""Incoming requests of one connection: httptools' events become heads and bounded pieces of bodies.

Data are parsed in slices and only while there is room, so neither a large body nor pipelined requests take memory
beyond a slice and the limits here.
"""

from collections import deque
from typing import Protocol

import httptools

from serving_runtime.protocol import caller_limit, callers
from serving_runtime.proxy.heads import MAX_HEAD_BYTES, BadMessage, RequestHead, request_head

SLICE_BYTES = 32 * 1024

HELD_BYTES = 64 * 1024
"""A body is passed on once it is whole or this much of it has arrived: slow clients take no place at the container."""

FULL_BYTES = 2 * HELD_BYTES
"""A body of which so much is not passed on yet stops the reading of its connection."""


class Incoming:
    """One request, whose body may still arrive.

    Attributes:
        head: None while it arrives.
        caller, caller_limit: by headers or address (protocol.callers, protocol.caller_limit).
        received_bytes: of the body.
        held_bytes: of the body, not taken yet.
        whole: whether all has arrived.
        keep_alive: whether the client sends further requests.
        refusal: why it is refused; nothing follows on its connection.
    """

    def __init__(self) -> None:
        self.head: RequestHead | None = None
        self.caller = b""
        self.caller_limit = 0
        self.received_bytes = 0
        self.held_bytes = 0
        self.whole = False
        self.keep_alive = False
        self.refusal: BadMessage | None = None
        self._pieces: deque[bytes] = deque()

    @property
    def ready(self) -> bool:
        """Return whether to begin with it."""
        return self.whole or self.held_bytes >= HELD_BYTES or self.refusal is not None

    def put(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.received_bytes += len(piece)
        self.held_bytes += len(piece)

    def take(self) -> list[bytes]:
        """Return the pieces of the body that have arrived since the last call."""
        found = list(self._pieces)
        self._pieces.clear()
        self.held_bytes = 0
        return found


class Owner(Protocol):
    """A parser's callbacks to its connection."""

    def on_begin(self) -> None: ...
    def on_head(self, incoming: Incoming) -> None: ...
    def on_piece(self, incoming: Incoming) -> None:
        """Note that more of the body has arrived, or that it has ended."""
        ...


class RequestParser:
    """Parses the bytes of one connection.

    Attributes:
        current: the request that is arriving; None between requests.
    """

    def __init__(self, owner: Owner, max_body_bytes: int, peer: bytes) -> None:
        self._owner = owner
        self._max_body_bytes = max_body_bytes
        self._peer = peer
        self._parser = httptools.HttpRequestParser(self)
        self.current: Incoming | None = None
        self._arriving = Incoming()
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._outside_bytes = 0  # received since the last piece of a body: head, trailers, chunks' extensions
        self._progressed = False

    def feed(self, data: bytes | memoryview) -> None:
        """Parse a slice; raises BadMessage where the bytes after it cannot be interpreted."""
        self._progressed = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # offered, not required: it was answered as plain HTTP/1.1, and is the last
            return
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ if isinstance(error.__context__, BadMessage) else error from None
        except httptools.HttpParserError as error:
            raise BadMessage(f"the request is not valid HTTP/1.1: {error}") from None
        self._outside_bytes = 0 if self._progressed or self.current is None else self._outside_bytes + len(data)
        if self._outside_bytes > MAX_HEAD_BYTES:
            raise BadMessage(f"the request's headers are larger than {MAX_HEAD_BYTES} bytes", 431)

    # Called by httptools

    def on_message_begin(self) -> None:
        self.current = self._arriving = Incoming()
        self._target = b""
        self._headers = []
        self._owner.on_begin()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._arriving.head is None:  # else a trailer, which must not pass for a header
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        incoming, parser = self._arriving, self._parser
        upgrades = parser.should_upgrade()
        head = request_head(
            parser.get_method(), self._target, self._headers, parser.get_http_version(), upgrades=upgrades
        )
        if head.length is not None and head.length > self._max_body_bytes:
            raise self._too_large()
        names = {name.lower(): value for name, value in self._headers if name.lower().startswith(b"fairlead-")}
        incoming.caller = callers.named(names) or self._peer
        incoming.caller_limit = caller_limit.sent(names)
        incoming.keep_alive = not head.http_1_0 and not upgrades and parser.should_keep_alive()
        incoming.head = head
        self._progressed = True
        self._owner.on_head(incoming)

    def on_body(self, body: bytes) -> None:
        incoming = self._arriving
        self._progressed = True
        if incoming.received_bytes + len(body) > self._max_body_bytes:
            raise self._too_large()
        incoming.put(body)
        self._owner.on_piece(incoming)

    def on_message_complete(self) -> None:
        incoming, self.current = self._arriving, None
        incoming.whole = True
        self._owner.on_piece(incoming)

    def _too_large(self) -> BadMessage:
        return BadMessage(f"the request body is larger than {self._max_body_bytes} bytes", 413)
