"""gRPC calls as streams of HTTP/2: messages out of content, the method, its answer or what became of it.

RefusedCall   no such method, which is told at once; or no gRPC at all
UnaryCall     one message, one answer: without a task where the method needs none
StreamCall    messages as they come, answers as they are written
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from serving_runtime.errors import InvalidArgument, ServingError
from serving_runtime.protocol.grpc.on_http2 import messages, statuses
from serving_runtime.protocol.grpc.on_http2.heads import Endpoint, Head
from serving_runtime.protocol.grpc.policy import Call, parsed
from serving_runtime.protocol.http2.connection import Connection
from serving_runtime.protocol.http2.frames import DEFAULT_WINDOW_BYTES, ErrorCode
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


class _Call(Stream):
    """What calls have in common."""

    __slots__ = ("_assembly", "_began", "_endpoint", "_head", "_settings", "_timer", "_work")

    def __init__(
        self, connection: Connection, stream_id: int, head: Head, endpoint: Endpoint, settings: CallSettings
    ) -> None:
        super().__init__(connection, stream_id)
        self._head = head
        self._endpoint = endpoint
        self._settings = settings
        self._assembly = messages.Assembly(settings.max_message_bytes)
        self._began = False
        self._work: Any = None  # a task, or what the engine gave: there is `cancel`
        self._timer: asyncio.TimerHandle | None = None
        if head.timeout_s is not None:
            self._timer = settings.loop.call_later(head.timeout_s, self._expire)

    def on_gone(self) -> None:
        self._stop()

    def _message(self, message: messages.Message) -> Any:
        """Return the message, or the ServingError that says why there is none."""
        content: bytes | memoryview = message.content
        if message.compressed:
            try:
                content = messages.decompress(message, self._head.coding, self._settings.max_message_bytes)
            except ServingError as error:
                return error
        return parsed(self._endpoint.kind, content)

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


class UnaryCall(_Call):
    """One message in, one out."""

    __slots__ = ("_request",)

    def __init__(
        self, connection: Connection, stream_id: int, head: Head, endpoint: Endpoint, settings: CallSettings
    ) -> None:
        super().__init__(connection, stream_id, head, endpoint, settings)
        self._request: messages.Message | None = None

    def on_content(self, content: bytes) -> None:
        try:
            found = self._assembly.feed(content)
            if len(found) > (self._request is None):
                raise InvalidArgument("the method takes one message, and there are more")
        except ServingError as error:
            self._fail(error.grpc_code, error.message)
            return
        if found:
            self._request = found[0]
        if not self.ended:
            self._need(self._assembly.needed_bytes)

    def on_end(self) -> None:
        if self._request is None or self._assembly.held_bytes:
            self._fail("INVALID_ARGUMENT", "the method takes one message, and there is no whole one")
            return
        request, self._request = self._message(self._request), None
        settings = self._settings
        direct = self._endpoint.direct
        if direct is None or settings.compression_level or settings.watched():
            self._work = settings.loop.create_task(self._answer(request))
            return
        if isinstance(request, ServingError):
            self._fail(request.grpc_code, request.message)
            return
        try:
            work = direct(request, self._reply)
        except ServingError as error:
            self._fail(error.grpc_code, error.message)
        except Exception as error:
            self._crash(error)
        else:
            if not self.finished:
                self._work = work

    def _reply(self, outcome: Any) -> None:
        self._work = None
        if self.finished:
            return
        if isinstance(outcome, ServingError):
            self._fail(outcome.grpc_code, outcome.message)
            return
        if self._timer is not None:
            self._timer.cancel()
        self._began = True
        self.answer(self._settings.beginnings.plain, messages.prefixed(outcome.SerializeToString()), statuses.OK)

    async def _answer(self, request: Any) -> None:
        try:
            answer = await self._endpoint.answer(request, Call(self._head.metadata, _no_write))
        except ServingError as error:
            self._work = None
            self._fail(error.grpc_code, error.message)
        except Exception as error:
            self._work = None
            self._crash(error)
        else:
            coding = self._settings.coding(self._head)
            if coding is None:
                self._reply(answer)
                return
            packed = await messages.compressed(answer.SerializeToString(), coding, self._settings.compression_level)
            self._work = None
            if self._timer is not None:
                self._timer.cancel()
            self._began = True
            self.answer(self._settings.beginnings.of_coding[coding], packed, statuses.OK)


async def _no_write(_message: bytes) -> None:
    raise TypeError("a method with one answer writes none")


class StreamCall(_Call):
    """Any number of messages in and out."""

    __slots__ = ("_inbox", "_inbox_bytes", "_news", "_room")

    def __init__(
        self, connection: Connection, stream_id: int, head: Head, endpoint: Endpoint, settings: CallSettings
    ) -> None:
        super().__init__(connection, stream_id, head, endpoint, settings)
        self._inbox: deque[messages.Message | ServingError] = deque()
        self._inbox_bytes = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._work = settings.loop.create_task(self._answer())

    def on_content(self, content: bytes) -> None:
        try:
            found = self._assembly.feed(content)
        except ServingError as error:
            self._inbox.append(error)
            self._news.set()
            return
        if found:
            self._inbox.extend(found)
            self._inbox_bytes += sum(message.size_bytes for message in found)
            self._news.set()
        self._need(self._assembly.needed_bytes)

    def on_end(self) -> None:
        if self._assembly.held_bytes:
            self._inbox.append(InvalidArgument("the call's last message is not whole"))
        self._news.set()

    def on_sent(self) -> None:
        self._room.set()

    def __aiter__(self) -> "StreamCall":
        return self

    async def __anext__(self) -> tuple[Any, int]:
        """Return the next request message, or the error in its place, and its size in bytes."""
        while not self._inbox:
            if self.ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        message = self._inbox.popleft()
        if isinstance(message, ServingError):
            return message, 0
        self._inbox_bytes -= message.size_bytes
        self._make_room()
        return self._message(message), message.size_bytes - messages.PREFIX_BYTES

    def _make_room(self) -> None:
        self.connection.inbound.release(self)
        room = DEFAULT_WINDOW_BYTES - self._inbox_bytes - self._assembly.held_bytes - self.window_bytes
        if room > DEFAULT_WINDOW_BYTES // 2:
            self.grant(room)

    async def _answer(self) -> None:
        try:
            await self._endpoint.answer(self, Call(self._head.metadata, self._write))
        except ServingError as error:
            self._work = None
            self._fail(error.grpc_code, error.message)
        except Exception as error:
            self._work = None
            self._crash(error)
        else:
            self._work = None
            if self._timer is not None:
                self._timer.cancel()
            if self._began:
                self.finish(statuses.OK)
            else:
                self.send_headers(self._settings.beginnings.plain + statuses.OK, end=True)

    async def _write(self, message: bytes) -> None:
        coding = self._settings.coding(self._head)
        packed = (
            messages.prefixed(message)
            if coding is None
            else await messages.compressed(message, coding, self._settings.compression_level)
        )
        self._begin(coding)
        self.send(packed)
        if self.unsent_bytes:
            self._room.clear()
            await self._room.wait()
