"""gRPC calls as streams of HTTP/2: what all have in common, and those that are refused.

RefusedCall   no such method, which is told at once; or no gRPC at all
RunningCall   |-- UnaryCall    one message, one answer: without a task where the method needs none (unary.py)
              `-- StreamCall   messages as they come, answers as they are written (streaming.py)
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from serving_runtime.errors import ServingError
from serving_runtime.protocol.grpc.on_http2 import messages, statuses
from serving_runtime.protocol.grpc.on_http2.heads import Endpoint, Head
from serving_runtime.protocol.grpc.policy import parsed
from serving_runtime.protocol.http2.connection import Connection
from serving_runtime.protocol.http2.frames import ErrorCode
from serving_runtime.protocol.http2.stream import Stream

logger = logging.getLogger(__name__)

_TEXTS = {405: b"gRPC takes POST only\n", 415: b"this port speaks gRPC: content-type must be application/grpc\n"}


@dataclass(frozen=True, slots=True)
class CallSettings:
    """What all calls share.

    Attributes:
        watched: whether calls are told of now, so that each runs with all that its policy puts around it.
        compression_level: zlib's, 0 for answers as they are.
    """

    loop: asyncio.AbstractEventLoop
    beginnings: statuses.Beginnings
    watched: Callable[[], bool]
    max_message_bytes: int
    compression_level: int

    def coding(self, head: Head) -> str | None:
        """Return how a call's answers are compressed, None for not."""
        if not self.compression_level:
            return None
        return next((coding for coding in ("gzip", "deflate") if coding in head.accepts), None)


class RefusedCall(Stream):
    """A request that is answered as soon as its headers, or all of it, are there."""

    __slots__ = ("_head", "_settings")

    def __init__(self, connection: Connection, stream_id: int, head: Head, settings: CallSettings) -> None:
        super().__init__(connection, stream_id)
        self._head = head
        self._settings = settings

    def on_content(self, content: bytes) -> None:
        self.grant(len(content))  # thrown away: there is room for more

    def on_begin(self) -> None:
        error = self._head.error
        if error is not None:
            trailers = statuses.trailers(error.grpc_code, error.message)
            self.send_headers(self._settings.beginnings.plain + trailers, end=True)

    def on_end(self) -> None:
        self.send_headers(statuses.refusal(self._head.http_status))
        self.send(_TEXTS[self._head.http_status])
        self.finish()


class RunningCall(Stream):
    """What calls have in common."""

    __slots__ = ("_began", "_endpoint", "_head", "_settings", "_timer", "_work")

    def __init__(
        self, connection: Connection, stream_id: int, head: Head, endpoint: Endpoint, settings: CallSettings
    ) -> None:
        super().__init__(connection, stream_id)
        self._head = head
        self._endpoint = endpoint
        self._settings = settings
        self._began = False
        self._work: Any = None  # a task, or what the engine gave: there is `cancel`
        self._timer: asyncio.TimerHandle | None = None
        if head.timeout_s is not None:
            self._timer = settings.loop.call_later(head.timeout_s, self._expire)

    def on_gone(self) -> None:
        self._stop()

    def _message(self, message: messages.Message) -> Any:
        """Return the message, or the ServingError that says why there is none."""
        try:
            return parsed(self._endpoint.kind, self._content(message))
        except ServingError as error:
            return error

    def _content(self, message: messages.Message) -> memoryview:
        """Return the message as it was before it was compressed; raises ServingError."""
        if not message.compressed:
            return message.content
        return messages.decompress(message, self._head.coding, self._settings.max_message_bytes)

    def _need(self, needed_bytes: int) -> None:
        """See to it that the client may send that much."""
        missing = needed_bytes - self.window_bytes
        if missing > 0:
            self.connection.inbound.ask(self, missing)

    def _begin(self, coding: str | None = None) -> None:
        if not self._began:
            self._began = True
            beginnings = self._settings.beginnings
            self.send_headers(beginnings.plain if coding is None else beginnings.of_coding[coding])

    def _stop(self) -> None:
        """End what is under way for this call."""
        if self._timer is not None:
            self._timer.cancel()
        work, self._work = self._work, None
        if work is not None:
            work.cancel()

    def _fail(self, code: str, message: str) -> None:
        """End the call with a status other than OK, behind what is to be sent already."""
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
        """Tell of a mistake of ours: the client is told so, the log has the rest, the others are served."""
        logger.error("answering a call of %s failed", self._endpoint.kind.DESCRIPTOR.name, exc_info=error)
        self._fail("INTERNAL", "internal error")

    def _expire(self) -> None:
        self._stop()
        if self.unsent_bytes:  # the client does not read: trailers would come behind what it has no use for
            self.reset(ErrorCode.CANCEL)
        else:
            self._fail("DEADLINE_EXCEEDED", "Deadline Exceeded")
