"""Streaming gRPC calls: any number of messages in both directions, each sent at once."""

import asyncio
from collections import deque

from serving_runtime.common.errors import InvalidArgument, ServingError
from serving_runtime.common.statuses import grpc_status
from serving_runtime.protocol import rows
from serving_runtime.protocol.grpc.on_http2 import messages, statuses
from serving_runtime.protocol.grpc.on_http2.calls import CallSettings, RunningCall
from serving_runtime.protocol.grpc.on_http2.heads import Endpoint, Head
from serving_runtime.protocol.grpc.policy import Call
from serving_runtime.protocol.http2.connection import Connection
from serving_runtime.protocol.http2.frames import DEFAULT_WINDOW_BYTES


class StreamCall(RunningCall):
    """Any number of messages in and out."""

    __slots__ = ("_assembly", "_inbox", "_inbox_bytes", "_news", "_room")

    def __init__(
        self, connection: Connection, stream_id: int, head: Head, endpoint: Endpoint, settings: CallSettings
    ) -> None:
        super().__init__(connection, stream_id, head, endpoint, settings)
        self._assembly = messages.Assembly(settings.max_message_bytes)
        self._inbox: deque[messages.Message | ServingError] = deque()
        self._inbox_bytes = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._work = settings.loop.create_task(self._answer())

    def on_content(self, content: bytes) -> None:
        try:
            self._hold(len(content))
        except ServingError as error:
            self._stop()
            self._fail(grpc_status(error), error.message)
            return
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

    @property
    def awaits_content(self) -> bool:
        """Return whether a message is incomplete; between messages a stream may be silent."""
        return not self.ended and self._assembly.held_bytes > 0

    def __aiter__(self) -> "StreamCall":
        return self

    async def __anext__(self) -> memoryview:
        """Return the next request message, serialized; raises ServingError for an invalid one."""
        while not self._inbox:
            if self.ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        message = self._inbox.popleft()
        if isinstance(message, ServingError):
            raise message
        self._inbox_bytes -= message.size_bytes
        self._make_room()
        held_bytes = self.held_bytes
        content = await self._content(message)
        self._release(message.size_bytes + self.held_bytes - held_bytes)  # the caller counts it from now on
        return content

    def _make_room(self) -> None:
        self.connection.inbound.release(self)
        room = DEFAULT_WINDOW_BYTES - self._inbox_bytes - self._assembly.held_bytes - self.window_bytes
        if room > DEFAULT_WINDOW_BYTES // 2:
            self.grant(room)

    async def _answer(self) -> None:
        try:
            await self._endpoint.answer(self, Call(self._head.metadata, self._write, self.caller))
        except ServingError as error:
            self._work = None
            self._fail(grpc_status(error), error.message)
        except Exception as error:
            self._work = None
            self._crash(error)
        else:
            self._work = None
            self._release(self.held_bytes)
            if self._timer is not None:
                self._timer.cancel()
            trailers = statuses.ok(rows.CALL.get())
            if self._began:
                self.finish(trailers)
            else:
                self.send_headers(self._settings.beginnings.plain + trailers, end=True)

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
