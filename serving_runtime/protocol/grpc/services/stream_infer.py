"""ModelStreamInfer call: many requests in flight, their responses on one stream (Triton: gRPC streaming).

    read -> engine.stream --> models that answer once: in the order of their requests --\
                          \\-> decoupled models: as they come ----------------------------+--> outbox -> write

Memory is bounded on both sides: reading pauses while much is in flight or unread, and decoupled models wait while the
client does not read pending responses.
"""

import asyncio
import contextlib
import functools
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

from serving_runtime import proto
from serving_runtime.common import side_thread
from serving_runtime.common.errors import ServingError, Unavailable
from serving_runtime.common.request import InferRequest, Outcome, RequestContext, Streaming
from serving_runtime.engine.serving import refusals
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol import callers, context
from serving_runtime.protocol.grpc.access import with_metadata
from serving_runtime.protocol.grpc.codec import infer, part_limit
from serving_runtime.protocol.grpc.codec.message_reuse import KnownRequest, KnownRequests
from serving_runtime.protocol.grpc.methods import Write
from serving_runtime.protocol.grpc.policy import parsed
from serving_runtime.protocol.request_memory import RequestMemory
from serving_runtime.protocol.tensors.decoding import SLOW_BYTES

MAX_IN_FLIGHT = 1024
MAX_IN_FLIGHT_BYTES = 64 * 1024 * 1024
"""Limits of requests in flight, or answered and in line behind one that is not, with their responses; above either,
reading pauses."""

HIGH_WATER_BYTES = 4 * 1024 * 1024
LOW_WATER_BYTES = 1024 * 1024
"""Unread responses: above the first, models and reading pause until the backlog falls to the second."""

_Decoded = tuple[InferRequest, infer.Parts]

_EMPTY_FINAL = "triton_enable_empty_final_response"


class _Request:
    """One request of the call.

    Attributes:
        asked: the request, or its message before it is decoded: both have id, model and version.
        known: known form of its message; None where the message had to be parsed.
        waits_in_line: its response must not overtake those of earlier requests in line.
        response: serialized response in line.
        size_bytes: of the message, and of the response in line.
        parts: shared memory slices for its outputs.
    """

    __slots__ = ("asked", "job", "known", "parts", "response", "shows_empty_final", "size_bytes", "waits_in_line")

    def __init__(self, asked: Any, known: KnownRequest | None, size_bytes: int) -> None:
        self.asked = asked
        self.known = known
        self.size_bytes = size_bytes
        self.job: Streaming | None = None
        self.shows_empty_final = False
        self.waits_in_line = True
        self.response: bytes | None = None
        self.parts: infer.Parts = {}


_Answer: TypeAlias = tuple[_Request, Outcome]


def _takes_long(answer: _Answer) -> bool:
    request, outcome = answer
    return not isinstance(outcome, ServingError) and infer.answer_is_slow(outcome, request.parts)


class InferStream:
    """The requests of one call and their unsent responses.

    Args:
        known: messages received before.
        errors_end: the first error ends the call with a gRPC status in place of a message (`triton_grpc_error`).
        memory: memory of unfinished requests, those in flight here included.

    Attributes:
        rows: of the requests answered so far.
    """

    def __init__(
        self, engine: Engine, known: KnownRequests, *, errors_end: bool, memory: RequestMemory | None = None
    ) -> None:
        self._engine = engine
        self._memory = memory if memory is not None else RequestMemory()
        self.rows = 0
        self._known = known
        self._errors_end = errors_end
        self._context = context.CALL.get()
        self._caller = callers.CALL.get()
        self._begun = 0
        self._in_flight: set[_Request] = set()
        self._in_flight_bytes = 0
        self._line: deque[_Request] = deque()
        self._outbox: deque[bytes | ServingError] = deque()
        self._outbox_bytes = 0
        self._draining = False
        self._answers: side_thread.InOrder[_Answer] = side_thread.InOrder(_takes_long, self._encoded, self._take)
        self._paused: set[Streaming] = set()
        self._news = asyncio.Event()
        self._room = asyncio.Event()

    async def run(self, requests: AsyncIterator[memoryview], write: Write) -> None:
        """Answer until the client has ended its side and everything is sent.

        Raises the ServingError that ends the call. However it ends, requests in flight then leave their queues, and the
        models that answer them are stopped.
        """
        reader = asyncio.create_task(self._read(requests))
        reader.add_done_callback(lambda _reader: self._news.set())
        try:
            while True:
                await self._send(write)
                if self._draining and not self._in_flight:
                    raise Unavailable("the server is stopping")
                if reader.done():
                    reader.result()  # raises where it did not finish
                    if not self._in_flight:
                        return
                await self._news.wait()
                self._news.clear()
        finally:
            reader.cancel()
            self._memory.held_bytes -= self._in_flight_bytes
            self._in_flight_bytes = 0
            for request in self._in_flight:
                if request.job is not None:
                    request.job.cancel()
                    request.job = None
            self._in_flight.clear()
            self._line.clear()

    def drain(self) -> None:
        """Stop reading, and end the call with UNAVAILABLE once nothing is in flight: the server is stopping."""
        self._draining = True
        self._news.set()

    async def _read(self, requests: AsyncIterator[memoryview]) -> None:
        try:
            await self._read_all(requests)
        except ServingError as error:
            self._end_with(error)

    async def _read_all(self, requests: AsyncIterator[memoryview]) -> None:
        async for content in requests:
            if self._draining:
                return
            found = self._known.find(content, self._caller)
            decoded = None
            if found is not None:
                asked, known = found
            elif len(content) > SLOW_BYTES and part_limit.is_slow(content):
                asked, decoded = await side_thread.submitted(functools.partial(self._parsed_and_decoded, content))
                known = None
            else:
                asked, known = parsed(proto.ModelInferRequest, content), None
                if self._engine.shared_memory.allowed and infer.reads_much(asked):
                    decoded = await side_thread.submitted(functools.partial(self._decoded, asked))
            if self._engine.sleeps(asked.model_name, asked.model_version):
                with contextlib.suppress(ServingError):  # the request itself gets the error
                    await self._engine.arrive(asked.model_name, len(content), asked.model_version)
            self._begin(_Request(asked, known, len(content)), content, decoded)
            while self._is_full():
                self._room.clear()
                await self._room.wait()

    def _is_full(self) -> bool:
        return (
            self._outbox_bytes > HIGH_WATER_BYTES
            or len(self._in_flight) >= MAX_IN_FLIGHT
            or self._in_flight_bytes > MAX_IN_FLIGHT_BYTES
        )

    def _parsed_and_decoded(self, content: memoryview) -> tuple[Any, "_Decoded | ServingError"]:
        """Return the message, and the request in it with its parts, or its error; raises InvalidArgument."""
        message = parsed(proto.ModelInferRequest, content)
        return message, self._decoded(message)

    def _decoded(self, message: Any) -> "_Decoded | ServingError":
        try:
            return infer.decode(message, self._engine.shared_memory)
        except ServingError as error:
            return error.with_traceback(None)  # its frames hold the decoded data

    def _begin(self, request: _Request, content: memoryview, decoded: "_Decoded | ServingError | None") -> None:
        self._in_flight.add(request)
        self._in_flight_bytes += request.size_bytes
        self._memory.held_bytes += request.size_bytes
        try:
            if request.known is None:
                message = request.asked
                with refusals.counted(self._engine, message.model_name, message.model_version):
                    if isinstance(decoded, ServingError):
                        raise decoded
                    request.asked, request.parts = decoded or infer.decode(message, self._engine.shared_memory)
                self._known.learn(content, message, request.asked)
            whole = with_metadata(context.within(request.asked, self._next_context()))
            if whole.caller != self._caller:
                whole = whole._replace(caller=self._caller)
            request.shows_empty_final = whole.parameters.get(_EMPTY_FINAL) is True
            job = self._engine.stream(whole, lambda outcome: self._answer(request, outcome))
            request.waits_in_line = not job.decoupled
            if request in self._in_flight:  # else it is answered already
                request.job = job
        except ServingError as error:
            self._line.append(request)
            self._answer(request, error.with_traceback(None))
            return
        if request.waits_in_line:
            self._line.append(request)

    def _next_context(self) -> RequestContext | None:
        self._begun += 1
        return None if self._context is None else context.numbered(self._context, self._begun)

    def _answer(self, request: _Request, outcome: Outcome) -> None:
        """Handle one answer of the engine."""
        self._answers.take((request, outcome))
        final = isinstance(outcome, ServingError) or outcome.final
        much = self._answers.busy or self._outbox_bytes > HIGH_WATER_BYTES
        if much and request.job is not None and not final:
            request.job.pause()
            self._paused.add(request.job)

    def _take(self, answer: _Answer, response: bytes | ServingError | None) -> None:
        """Handle an answer in its serialized form, None for none."""
        request, outcome = answer
        final = isinstance(outcome, ServingError) or outcome.final
        if not isinstance(outcome, ServingError) and final:
            self.rows += outcome.rows
        if final and not request.waits_in_line:
            self._leave(request)
        if isinstance(response, ServingError):
            if isinstance(outcome, ServingError) and self._errors_end:
                self._end_with(response)
                return
            response = infer.encode_stream_error(response, request.asked, final=final)
        if response is not None:
            self._line_up(request, response)
        self._news.set()

    def _encoded(self, answer: _Answer) -> bytes | None:
        """Return an answer serialized, None for none; raises ServingError, which the answer itself may be."""
        request, outcome = answer
        if isinstance(outcome, ServingError):
            raise outcome
        if not (outcome.outputs or request.waits_in_line or request.shows_empty_final):
            return None
        memory = self._engine.shared_memory
        if request.known is not None:
            return request.known.serialized_in_stream(outcome, memory)
        return infer.encode_stream(outcome, memory, request.parts)

    def _line_up(self, request: _Request, response: bytes) -> None:
        if not request.waits_in_line:
            self._put(response)
            return
        if request not in self._in_flight:  # the call is over
            return
        request.response = response
        request.size_bytes += len(response)
        self._in_flight_bytes += len(response)
        self._memory.held_bytes += len(response)
        while self._line and self._line[0].response is not None:
            first = self._line.popleft()
            self._leave(first)
            self._put(first.response or b"")

    def _leave(self, request: _Request) -> None:
        if request not in self._in_flight:  # the call is over
            return
        self._in_flight.discard(request)
        request.job = None  # which holds its tensors, and the request
        self._in_flight_bytes -= request.size_bytes
        self._memory.held_bytes -= request.size_bytes
        self._room.set()

    def _end_with(self, error: ServingError) -> None:
        """End the call with an error, after queued responses."""
        self._outbox.append(error)
        self._news.set()

    def _put(self, response: bytes) -> None:
        self._outbox.append(response)
        self._outbox_bytes += len(response)

    async def _send(self, write: Write) -> None:
        while self._outbox:
            response = self._outbox.popleft()
            if isinstance(response, ServingError):
                raise response
            await write(response)
            self._outbox_bytes -= len(response)
            if self._outbox_bytes <= LOW_WATER_BYTES:
                self._room.set()
                while self._paused:
                    self._paused.pop().resume()
