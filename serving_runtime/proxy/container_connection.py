"""Connection to the container: one request out, its answer in, then the next one.

An answer ends by its length, its last chunk or the end of the connection; what comes after it makes the connection
useless. Unrequested bytes, heads without end and invalid framing are a broken answer.
"""

import asyncio
from typing import Protocol, cast

import httptools

from serving_runtime.proxy.heads import MAX_HEAD_BYTES, AnswerHead, BadMessage, answer_head

_MAX_INTERIM = 8
"""Answers 1xx before the final one."""


class Receiver(Protocol):
    """Takes one answer."""

    bodiless: bool
    """Whether the request is HEAD, whose answer has no body whatever its length says."""

    def on_answer_head(self, head: AnswerHead) -> None: ...
    def on_answer_piece(self, piece: bytes) -> None: ...
    def on_answer_read(self) -> None:
        """Note that no further piece is at hand for now."""
        ...

    def on_answer_end(self) -> None: ...
    def on_broken(self, reason: str, status: int) -> None:
        """Note that the answer is not whole; the last call. `status` is for the client."""
        ...

    def on_writable(self) -> None:
        """Note that the container reads on."""
        ...


class Owner(Protocol):
    """Keeps connections that have answered.

    Attributes:
        name: the container's, in messages.
    """

    name: str

    def on_free(self, connection: "ContainerConnection") -> None: ...
    def on_gone(self, connection: "ContainerConnection") -> None: ...


class ContainerConnection(asyncio.Protocol):
    """Speaks HTTP/1.1 with the container.

    Attributes:
        sent: whether the request is written whole; only then may another one follow it.
        full: whether the container reads more slowly than the request comes.
        progressed_at: when bytes of a body last passed in either direction, or the request began; the loop's time.
        free_since: when it was last used; the loop's time.
    """

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._receiver: Receiver | None = None
        self._head: AnswerHead | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._outside_bytes = 0  # received since the last piece of a body: head, trailers, chunks' extensions
        self._passed_piece = False
        self._interim = 0
        self._useless = False
        self._done = False  # the answer is whole
        self._keeps = False
        self._ends_with_connection = False
        self._paused = False
        self.full = False
        self.sent = False
        self.progressed_at = self.free_since = self._loop.time()

    @property
    def usable(self) -> bool:
        return not self._useless and not self._transport.is_closing()

    @property
    def waits_for_client(self) -> bool:
        """Return whether the answer is held up because its client does not read."""
        return self._paused

    def request(self, begun: bytes, receiver: Receiver) -> None:
        """Begin a request with its head, and what there is of its body; the rest follows by `write`."""
        self._receiver = receiver
        self._head = None
        self._done = self.sent = False
        self._outside_bytes = self._interim = 0
        self.progressed_at = self._loop.time()
        self._transport.write(begun)

    def write(self, piece: bytes) -> None:
        self._transport.write(piece)
        self.progressed_at = self._loop.time()

    def pause(self) -> None:
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self.progressed_at = self._loop.time()
            self._transport.resume_reading()

    def drop(self) -> None:
        """Give the request up and end the connection."""
        self._receiver = None
        self._useless = True
        self._transport.abort()

    def end_silence(self) -> None:
        """End the request: the container makes no progress."""
        self._break(f"{self._owner.name} has made no progress with the request for too long", 504)

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._receiver is None:  # unrequested
            self._useless = True
            self._transport.abort()
            return
        self._passed_piece = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, BadMessage):
                raise
            self._fail(f"the answer of {self._owner.name} is invalid: {error.__context__}")
            return
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"the answer of {self._owner.name} is not valid HTTP/1.1: {error}")
            return
        if self._done:
            self._end()
            return
        self._outside_bytes = 0 if self._passed_piece else self._outside_bytes + len(data)
        if self._outside_bytes > MAX_HEAD_BYTES:
            self._break(f"the headers of the answer of {self._owner.name} are larger than {MAX_HEAD_BYTES} bytes")
        elif self._receiver is not None:
            self._receiver.on_answer_read()

    def eof_received(self) -> None:
        """Take the end of the connection for the end of an answer without a length."""
        self._useless = True
        head = self._head
        if self._receiver is not None and head is not None and not self._done and self._ends_with_connection:
            self._done = True
            self._end()

    def connection_lost(self, error: Exception | None) -> None:
        self._useless = True
        self._owner.on_gone(self)
        if self._receiver is not None:
            began = self._head is not None
            what = "in the middle of its answer" if began else "without an answer"
            reason = f": {error}" if error else ""
            self._break(f"{self._owner.name} closed the connection {what}{reason}")

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        self.progressed_at = self._loop.time()
        if self._receiver is not None:
            self._receiver.on_writable()

    # Called by httptools

    def on_message_begin(self) -> None:
        self._headers = []
        if self._done:  # more than one answer
            self._useless = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None:  # else a trailer
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        receiver = self._receiver
        if self._done or receiver is None:
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            self._interim += 1
            if self._interim > _MAX_INTERIM:
                raise BadMessage(f"more than {_MAX_INTERIM} answers 1xx")
            return
        head = answer_head(status, self._headers, self._parser.get_http_version())
        self._head = head
        chunked = any(name.lower() == b"transfer-encoding" for name, _ in head.headers)
        self._ends_with_connection = head.length is None and not chunked
        self.progressed_at = self._loop.time()
        receiver.on_answer_head(head)
        if receiver.bodiless and self._receiver is receiver:
            self._done, self._keeps = True, False

    def on_body(self, body: bytes) -> None:
        self._passed_piece = True
        if self._done or self._receiver is None:
            return
        self.progressed_at = self._loop.time()
        self._receiver.on_answer_piece(body)

    def on_message_complete(self) -> None:
        if self._head is not None and not self._done:
            self._done = True
            self._keeps = self._parser.should_keep_alive()

    # The end of a request

    def _fail(self, reason: str) -> None:
        """End after bytes that are not HTTP; an answer that was whole before them stays one."""
        self._useless = True
        if self._done:
            self._end()
        else:
            self._break(reason)

    def _break(self, reason: str, status: int = 502) -> None:
        receiver, self._receiver = self._receiver, None
        self._useless = True
        self._transport.abort()
        if receiver is not None:
            receiver.on_broken(reason, status)

    def _end(self) -> None:
        receiver, self._receiver = self._receiver, None
        if self._keeps and not self._useless:
            self.free_since = self._loop.time()
            self.resume()
            if self.sent and not self.full:
                self._owner.on_free(self)
            else:  # an answer to a request that it has not read whole
                self._useless = True
        if not self._keeps or self._useless:
            self._transport.close()
        if receiver is not None:
            receiver.on_answer_end()
