"""Unary gRPC calls: one message and one answer, without a task where the method needs none."""

from serving_runtime.common.errors import InvalidArgument, ServingError
from serving_runtime.common.statuses import grpc_status
from serving_runtime.protocol import rows
from serving_runtime.protocol.grpc.methods import Answered
from serving_runtime.protocol.grpc.on_http2 import messages, statuses
from serving_runtime.protocol.grpc.on_http2.calls import CallSettings, RunningCall
from serving_runtime.protocol.grpc.on_http2.heads import Endpoint, Head
from serving_runtime.protocol.grpc.policy import Call
from serving_runtime.protocol.http2.connection import Connection


class UnaryCall(RunningCall):
    """One message in, one out."""

    __slots__ = ("_assembly", "_request")

    def __init__(
        self, connection: Connection, stream_id: int, head: Head, endpoint: Endpoint, settings: CallSettings
    ) -> None:
        super().__init__(connection, stream_id, head, endpoint, settings)
        self._request: messages.Message | None = None
        self._assembly: messages.Assembly | None = None

    def on_content(self, content: bytes) -> None:
        memory = self._memory
        memory.held_bytes += len(content)
        self.held_bytes += len(content)
        if memory.held_bytes > memory.arriving_limit_bytes and not self._has_room():
            return
        assembly = self._assembly
        if assembly is None:
            most_bytes = self._settings.max_message_bytes
            if self._request is None:
                self._request = messages.whole(content, most_bytes)
                if self._request is not None:  # as nearly all are
                    return
            assembly = self._assembly = messages.Assembly(most_bytes)
        try:
            found = assembly.feed(content)
            if len(found) > (self._request is None):
                raise InvalidArgument("the method takes one message, and there are more")
        except ServingError as error:
            self._fail(grpc_status(error), error.message)
            return
        if found:
            self._request = found[0]
        if not self.ended:
            self._need(assembly.needed_bytes)

    def _has_room(self) -> bool:
        try:
            self._check_memory()
        except ServingError as error:
            self._request = self._assembly = None
            self._fail(grpc_status(error), error.message)
            return False
        return True

    def on_end(self) -> None:
        if self._request is None or (self._assembly is not None and self._assembly.held_bytes):
            self._fail("INVALID_ARGUMENT", "the method takes one message, and there is no whole one")
            return
        request, self._request = self._request, None
        settings = self._settings
        direct = self._endpoint.direct
        if direct is None or request.compressed or settings.compression_level or settings.watched():
            self._work = settings.loop.create_task(self._answer(request))
            return
        try:
            work = direct(request.content, self._reply, self._head.caller or self.connection.peer)
        except ServingError as error:
            self._fail(grpc_status(error), error.message)
        except Exception as error:
            self._crash(error)
        else:
            if not self.finished:
                self._work = work

    def _reply(self, outcome: Answered | ServingError) -> None:
        self._work = None
        if self.finished:
            return
        if isinstance(outcome, ServingError):
            self._fail(grpc_status(outcome), outcome.message)
            return
        if self._timer is not None:
            self._timer.cancel()
        self._began = True
        self._memory.held_bytes -= self.held_bytes
        self.held_bytes = 0
        message, number = outcome
        self.answer(self._settings.beginnings.plain, messages.prefixed(message), statuses.ok(number))

    async def _answer(self, request: messages.Message) -> None:
        try:
            answer = await self._endpoint.answer(
                await self._message(request), Call(self._head.metadata, _no_write, self.caller)
            )
        except ServingError as error:
            self._work = None
            self._fail(grpc_status(error), error.message)
        except Exception as error:
            self._work = None
            self._crash(error)
        else:
            coding = self._settings.coding(self._head)
            if coding is None:
                self._reply((answer.SerializeToString(), rows.CALL.get()))
                return
            packed = await messages.compressed(answer.SerializeToString(), coding, self._settings.compression_level)
            self._work = None
            if self._timer is not None:
                self._timer.cancel()
            self._began = True
            self._release(self.held_bytes)
            trailers = statuses.ok(rows.CALL.get())
            self.answer(self._settings.beginnings.of_coding[coding], packed, trailers)


async def _no_write(_message: bytes) -> None:
    raise TypeError("a method with one answer writes none")
