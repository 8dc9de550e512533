"""ASGI handler of Django that streams large request bodies: one is read only when a view reads it.

Django copies every body to a temporary file before any code of ours runs, so anyone could fill the disk. Here a body
that is large or of unknown length stays in the socket, with the server's flow control, until a synchronous view reads
it: after the caller was authenticated, and no further than `allow_body` permits. Django handles small ones as usual.
"""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import CancelledError
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest

from common.http.error_body import error_body

_STREAMED = b"application/octet-stream"
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class StreamingASGIHandler(ASGIHandler):
    """The ASGI application; `control_plane.asgi` makes the one instance."""

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        limit_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        headers = dict(scope["headers"])
        if _is_small(headers, limit_bytes):
            await super().handle(scope, receive, send)
        elif scope["method"] in ("GET", "HEAD"):
            # No view reads it, and until it is read the disconnect of a streaming client goes unnoticed.
            await refuse(send, 413, "too_large", f"{scope['method']} takes no large body; send none")
        elif b"content-length" not in headers and headers.get(b"content-type") != _STREAMED:
            # DRF takes a body without a length for an empty one.
            await refuse(send, 411, "length_required", "the body has no Content-Length; send it with its length")
        else:
            body = LazyBody(receive, limit_bytes)
            await super().handle(scope, body.disconnected, send)

    async def read_body(self, receive: Any) -> Any:
        """Return what becomes the request's stream."""
        body = getattr(receive, "__self__", None)
        return body if isinstance(body, LazyBody) else await super().read_body(receive)


def allow_body(request: HttpRequest, max_bytes: int) -> None:
    """Let the view read up to `max_bytes` of the body; to be called before it reads, and after it authenticates."""
    stream = getattr(request, "_stream", None)
    if isinstance(stream, LazyBody):
        stream.limit_bytes = max_bytes


class LazyBody:
    """A request's body as a synchronous file; made in the event loop, read in a view's thread."""

    def __init__(self, receive: Receive, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._buffer = bytearray()
        self._taken_bytes = 0
        self._ended = asyncio.Event()
        self._left = False

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, fewer only at the end of the body; all of it for -1.

        Raises:
            RequestDataTooBig: the body has more than `limit_bytes`.
            OSError: the client disconnected before the end.
        """
        while not self._ended.is_set() and (size < 0 or len(self._buffer) < size):
            self._fill()
        if self._left:
            raise OSError("the client closed the connection before the end of the body")
        count = len(self._buffer) if size < 0 else min(size, len(self._buffer))
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def seekable(self) -> bool:
        """Return False: bytes can be read once."""
        return False

    def close(self) -> None:
        """Discard received bytes that were not read."""
        self._buffer.clear()

    async def disconnected(self) -> Message:
        """Return the disconnect message of the client; Django waits for it beside the view."""
        await self._ended.wait()
        return {"type": "http.disconnect"} if self._left else await self._receive()

    def _fill(self) -> None:
        if threading.get_ident() == self._loop_thread:
            raise RuntimeError("a large body can be read only in a synchronous view")
        future = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
        try:
            chunk = future.result()
        except CancelledError as error:
            raise OSError("the server stopped before the end of the body") from error
        self._taken_bytes += len(chunk)
        if self._taken_bytes > self.limit_bytes:
            raise RequestDataTooBig(f"the body has more than {self.limit_bytes} bytes")
        self._buffer += chunk

    async def _next(self) -> bytes:
        message = await self._receive()
        self._left = message["type"] == "http.disconnect"
        if self._left or not message.get("more_body", False):
            self._ended.set()
        return bytes(message.get("body", b""))


def _is_small(headers: Mapping[bytes, bytes], limit_bytes: int) -> bool:
    """Return whether the headers declare a body of at most `limit_bytes`, or none."""
    if b"transfer-encoding" in headers:
        return False
    length = headers.get(b"content-length", b"0")
    return length.isdigit() and int(length) <= limit_bytes


async def refuse(send: Send, status: int, code: str, message: str, more: Mapping[str, str] | None = None) -> None:
    """Send an error in the API's format, with more headers."""
    body = json.dumps(error_body(code, message)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in (more or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
