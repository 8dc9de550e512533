"""HTTP messages between a connection, which knows HTTP, and an application, which knows paths."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol, TypeAlias

import orjson

from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable
from serving_runtime.common.statuses import http_status
from serving_runtime.protocol.tensors.binary import Buffer

JSON = b"Content-Type: application/json\r\n"

STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


class Request(NamedTuple):
    """One complete request.

    Attributes:
        target: path and query as sent.
        body: as sent, until the coding of `window_bits` is undone.
        body_offset: position of the body in its buffer.
        json_length: the Inference-Header-Content-Length, None without one.
        http_1_0: the client speaks HTTP/1.0, which lacks chunks.
        headers: those that the application keeps, names as sent.
        window_bits: compression of the body, for zlib; None without one.
        caller: by headers or address (protocol.callers).
        caller_limit: of the caller's unanswered requests (protocol.caller_limit); 0 for none.
    """

    method: bytes
    target: bytes
    body: Buffer
    body_offset: int
    json_length: int | None
    accept_encoding: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    http_1_0: bool = False
    window_bits: int | None = None
    caller: bytes = b""
    caller_limit: int = 0


class BodyWriter(Protocol):
    """Destination of a body in pieces."""

    @property
    def buffered_bytes(self) -> int:
        """Return how many bytes the client has not taken yet."""
        ...

    def write(self, piece: bytes) -> None: ...
    def end(self) -> None: ...


class BodySource(Protocol):
    """Source of a body in pieces."""

    def begin(self, writer: BodyWriter) -> None:
        """Take the writer, once; the head of the answer has been written."""
        ...

    def pause(self) -> None:
        """Slow down: the client reads more slowly than the pieces come."""
        ...

    def resume(self) -> None: ...


class Response(NamedTuple):
    """One answer; `headers` are whole lines, without length and connection headers, which the connection adds.

    Attributes:
        length: of all chunks in bytes.
        source: of a body in pieces; there are no chunks then.
    """

    status: int
    headers: bytes
    chunks: Sequence[Any]
    length: int
    source: BodySource | None = None


Reply: TypeAlias = Callable[[Response], None]


class Application(Protocol):
    """Answers requests."""

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        """Call `reply` once, now or later; return a handle to cancel if the client goes away before.

        Raises ServingError in place of calling it.
        """
        ...


def json_response(content: Any, status: int = 200) -> Response:
    body = orjson.dumps(content)
    return Response(status, JSON, (body,), len(body))


def error_response(error: ServingError) -> Response:
    headers = b"" if error.retry_after_s is None else b"Retry-After: %d\r\n" % error.retry_after_s
    return text_error(http_status(error), error.message, headers)


def text_error(status: int, message: str, headers: bytes = b"") -> Response:
    """Return an error of HTTP itself, in V2's error form."""
    body = orjson.dumps({"error": message})
    return Response(status, JSON + headers, (body,), len(body))
