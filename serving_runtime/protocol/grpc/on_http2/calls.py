"""gRPC calls as HTTP/2 streams: their common base, and refused calls.

RefusedCall   no such method, refused at once; or no gRPC at all
RunningCall   |-- UnaryCall    one message, one answer: without a task where the method needs none (unary.py)
              `-- StreamCall   messages as they come, answers as they are written (streaming.py)
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from serving_runtime.common import side_thread
from serving_runtime.common.errors import ServingError
from serving_runtime.common.statuses import grpc_status
from serving_runtime.protocol.grpc.on_http2 import messages, statuses
from serving_runtime.protocol.grpc.on_http2.heads import Endpoint, Head
from serving_runtime.protocol.grpc.policy import parsed
from serving_runtime.protocol.http2.connection import Connection
from serving_runtime.protocol.http2.frames import ErrorCode
from serving_runtime.protocol.http2.stream import Stream
from serving_runtime.protocol.request_memory import LARGE_REQUEST_BYTES, RequestMemory
from serving_runtime.protocol.tensors.decoding import SLOW_BYTES

logger = logging.getLogger(__name__)

_TEXTS = {405: b"gRPC takes POST only\n", 415: b"this port speaks gRPC: content-type must be application/grpc\n"}


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Settings that all calls share.

    Attributes:
        watched: whether calls are logged or traced now, so that each runs with its whole policy.
        compression_level: zlib's, 0 for uncompressed answers.
        memory: memory of unfinished requests.
    """

    loop: asyncio.AbstractEventLoop
    beginnings: statuses.Beginnings
    watched: Callable[[], bool]
    max_message_bytes: int
    compression_level: int
    memory: RequestMemory

    def coding(self, head: Head) -> str | None:
        """Return the compression of a call's answers, None for no compression."""
        if not self.compression_level:
            return None
        return next((coding for coding in ("gzip", "deflate") if coding in head.accepts), None)


class RefusedCall(Stream):
    """A request that is answered when its headers, or all of it, have arrived."""

    __slots__ = ("_head", "_settings")

    def __init__(self, connection: Connection, stream_id: int, head: Head, settings: CallSettings) -> None:
        super().__init__(connection, stream_id)
        self._head = head
        self._settings = settings

    def on_content(self, content: bytes) -> None:
        self.grant(len(content))  # discarded: there is room for more

    def on_begin(self) -> None:
        error = self._head.error
        if error is not None:
            trailers = statuses.trailers(grpc_status(error), error.message)
            self.send_headers(self._settings.beginnings.plain + trailers, end=True)

    def on_end(self) -> None:
        self.send_headers(statuses.refusal(self._head.http_status))
        self.send(_TEXTS[self._head.http_status])
        self.finish()


class RunningCall(Stream):
    """Common base of calls.

    Attributes:
        held_bytes: this call's share in the memory of unfinished requests.
    """

    __slots__ = ("_began", "_endpoint", "_head", "_memory", "_settings", "_timer", "_work", "held_bytes")

    def __init__(
        self, connection: Connection, stream_id: int, head: Head, endpoint: Endpoint, settings: CallSettings
    ) -> None:
        super().__init__(connection, stream_id)
        self._head = head
        self._endpoint = endpoint
        self._settings = settings
        self._memory = settings.memory
        self.held_bytes = 0
        self._began = False
        self._work: Any = None  # a task, or the engine's handle: both have `cancel`
        self._timer: asyncio.TimerHandle | None = None
        if head.timeout_s is not None:
            self._timer = settings.loop.call_later(head.timeout_s, self._expire)

    @property
    def caller(self) -> bytes:
        """Return who calls: by metadata, else by address."""
        return self._head.caller or self.connection.peer

    def on_gone(self) -> None:
        self._stop()

    def on_overdue(self) -> None:
        self._stop()
        self._fail("DEADLINE_EXCEEDED", "the call's message did not arrive in time")

    def _hold(self, size_bytes: int) -> None:
        """Count more bytes for this call; raises TooMuchUnfinished."""
        self.held_bytes += size_bytes
        memory = self._memory
        memory.held_bytes += size_bytes
        if memory.held_bytes > memory.arriving_limit_bytes:
            self._check_memory()

    def _check_memory(self) -> None:
        memory = self._memory
        most_bytes = memory.limit_bytes if self.held_bytes <= LARGE_REQUEST_BYTES else memory.arriving_limit_bytes
        if memory.held_bytes > most_bytes and memory.held_bytes > self.held_bytes:
            raise memory.refusal()

    def _release(self, size_bytes: int) -> None:
        """Count fewer bytes for this call, or none."""
        size_bytes = min(size_bytes, self.held_bytes)
        self.held_bytes -= size_bytes
        self._memory.held_bytes -= size_bytes

    async def _message(self, message: messages.Message) -> Any:
        """Return the message, or the ServingError that replaces it."""
        try:
            content = await self._content(message)
            if len(content) <= SLOW_BYTES:
                return parsed(self._endpoint.kind, content)
            return await side_thread.submitted(lambda: parsed(self._endpoint.kind, content))
        except ServingError as error:
            return error

    async def _content(self, message: messages.Message) -> memoryview:
        """Return the decompressed message; raises ServingError."""
        return await messages.decompress(message, self._head.coding, self._settings.max_message_bytes, self._hold)

    def _need(self, needed_bytes: int) -> None:
        """Widen the window where the client may not yet send that much."""
        missing = needed_bytes - self.window_bytes
        if missing > 0:
            self.connection.inbound.ask(self, missing)

    def _begin(self, coding: str | None = None) -> None:
        if not self._began:
            self._began = True
            beginnings = self._settings.beginnings
            self.send_headers(beginnings.plain if coding is None else beginnings.of_coding[coding])

    def _stop(self) -> None:
        """End the running work of this call."""
        if self.held_bytes:
            self._memory.drop(self.held_bytes)
            self.held_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
        work, self._work = self._work, None
        if work is not None:
            work.cancel()

    def _fail(self, code: str, message: str) -> None:
        """End the call with a status other than OK, after queued content."""
        self._release(self.held_bytes)
        if self.finished:
            return
        trailers = statuses.trailers(code, message)
        if self._timer is not None:
            self._timer.cancel()
        if self._began:
            self.finish(trailers)
        else:
            self.send_headers(self._settings.beginnings.plain + trailers, end=True)

    def _crash(self, error: BaseException) -> None:
        """Report a bug of the server: the client gets an error, the log the details; other calls go on."""
        logger.error("answering a call of %s failed", self._endpoint.kind.DESCRIPTOR.name, exc_info=error)
        self._fail("INTERNAL", "internal error")

    def _expire(self) -> None:
        self._stop()
        if self.unsent_bytes:  # the client does not read: trailers would queue behind content it no longer needs
            self.reset(ErrorCode.CANCEL)
        else:
            self._fail("DEADLINE_EXCEEDED", "Deadline Exceeded")
