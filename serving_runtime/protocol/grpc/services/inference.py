"""V2 inference service: one coroutine per method, from message to message. Knows the engine, but no transport."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from serving_runtime import proto
from serving_runtime.common import side_thread
from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable, InferRequest, InferResponse, Outcome
from serving_runtime.engine.serving import refusals
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol import callers, context, rows
from serving_runtime.protocol.grpc.access import with_metadata
from serving_runtime.protocol.grpc.codec import infer as codec
from serving_runtime.protocol.grpc.codec import part_limit
from serving_runtime.protocol.grpc.codec.message_reuse import KnownRequests
from serving_runtime.protocol.grpc.methods import Answered, DirectMethod, Metadata, Method, Reply, StreamMethod, Write
from serving_runtime.protocol.grpc.policy import parsed
from serving_runtime.protocol.grpc.services import repository
from serving_runtime.protocol.grpc.services.stream_infer import InferStream
from serving_runtime.protocol.request_memory import RequestMemory
from serving_runtime.protocol.tensors.decoding import SLOW_BYTES, Decoding


class V2Service:
    """Answers the methods of V2 itself, and of the read-only extensions; they raise ServingError."""

    name = "inference.GRPCInferenceService"

    def __init__(self, engine: Engine, memory: RequestMemory | None = None) -> None:
        self._engine = engine
        self._memory = memory if memory is not None else RequestMemory()
        self._loop = asyncio.get_running_loop()
        self._streams: set[InferStream] = set()
        self._known = KnownRequests()
        engine.watch(self._known.clear)
        self.methods: dict[str, Method] = {
            "ServerLive": self.server_live,
            "ServerReady": self.server_ready,
            "ModelReady": self.model_ready,
            "ServerMetadata": self.server_metadata,
            "ModelMetadata": self.model_metadata,
            "ModelConfig": self.model_config,
            "ModelStatistics": self.model_statistics,
            "RepositoryIndex": self.repository_index,
            "RepositoryModelLoad": self.repository_model_load,
            "RepositoryModelUnload": self.repository_model_unload,
            "ModelInfer": self.model_infer,
        }
        self.direct: dict[str, DirectMethod] = {"ModelInfer": self.infer}
        self.streams: dict[str, StreamMethod] = {"ModelStreamInfer": self.model_stream_infer}

    def drain(self) -> None:
        for stream in self._streams:
            stream.drain()

    async def server_live(self, _request: Any) -> Any:
        return proto.message("inference.ServerLiveResponse")(live=True)

    async def server_ready(self, _request: Any) -> Any:
        return proto.message("inference.ServerReadyResponse")(ready=self._engine.ready)

    async def model_ready(self, request: Any) -> Any:
        ready = self._engine.model_ready(request.name, request.version)
        return proto.message("inference.ModelReadyResponse")(ready=ready)

    async def server_metadata(self, _request: Any) -> Any:
        return proto.message("inference.ServerMetadataResponse")(**self._engine.server_metadata())

    async def model_metadata(self, request: Any) -> Any:
        metadata = self._engine.model_metadata(request.name, request.version)
        return proto.message("inference.ModelMetadataResponse")(**metadata)

    async def model_config(self, request: Any) -> Any:
        servable = self._engine.servable(request.name, request.version)
        return proto.message("inference.ModelConfigResponse")(config=servable.message)

    async def model_statistics(self, request: Any) -> Any:
        return await self._engine.statistics(request.name, request.version)

    async def repository_index(self, request: Any) -> Any:
        response = proto.message("inference.RepositoryIndexResponse")()
        for entry in await self._engine.index(ready_only=request.ready, repository=request.repository_name):
            response.models.add(name=entry.name, version=entry.version, state=entry.state, reason=entry.reason)
        return response

    async def repository_model_load(self, request: Any) -> Any:
        config, files = repository.load_parameters(request)
        await self._engine.load(request.model_name, config, files)
        return proto.message("inference.RepositoryModelLoadResponse")()

    async def repository_model_unload(self, request: Any) -> Any:
        dependents = repository.unload_dependents(request)
        await self._engine.unload(request.model_name, dependents=dependents)
        return proto.message("inference.RepositoryModelUnloadResponse")()

    def infer(self, content: memoryview, reply: Reply, caller: bytes = b"") -> Cancellable:
        """Reply with the model's answer; raises ServingError for a request that never reaches the model."""
        found = self._known.find(content, caller)
        if found is None:
            return self._infer_parsed(content, reply, caller)
        request, known = found
        memory = self._engine.shared_memory

        def on_done(outcome: Outcome) -> None:
            _answer(outcome, reply, lambda response: known.serialized(response, memory))

        return self._engine.infer(request, on_done)

    def _infer_parsed(self, content: memoryview, reply: Reply, caller: bytes) -> Cancellable:
        memory = self._engine.shared_memory
        if len(content) > SLOW_BYTES and part_limit.is_slow(content):
            return self._decode_later(lambda: parsed(proto.ModelInferRequest, content), reply, caller)
        message = parsed(proto.ModelInferRequest, content)
        if memory.allowed and codec.reads_much(message):
            return self._decode_later(lambda: message, reply, caller)
        try:
            request, parts = codec.decode(message, memory)
        except ServingError as error:
            refusals.count(self._engine, message.model_name, message.model_version, error)
            raise
        self._known.learn(content, message, request)
        return self._begin(request, parts, reply, caller)

    def _decode_later(self, parse: Callable[[], Any], reply: Reply, caller: bytes) -> Cancellable:
        named: list[Any] = []

        def decode() -> tuple[InferRequest, codec.Parts]:
            named.append(parse())
            return codec.decode(named[0], self._engine.shared_memory)

        def count(error: ServingError) -> None:
            for message in named:
                refusals.count(self._engine, message.model_name, message.model_version, error)

        return Decoding(decode, lambda found: self._begin(*found, reply, caller), count, reply)

    def _begin(self, request: InferRequest, parts: codec.Parts, reply: Reply, caller: bytes) -> Cancellable:
        memory = self._engine.shared_memory

        def on_done(outcome: Outcome) -> None:
            _answer(outcome, reply, lambda response: codec.serialized(response, memory, parts), parts)

        return self._engine.infer(request._replace(caller=caller), on_done)

    async def model_infer(self, message: Any) -> Any:
        """Return the model's answer; a cancelled call takes its request out of the queue."""
        answered: asyncio.Future[InferResponse] = self._loop.create_future()
        memory = self._engine.shared_memory
        with refusals.counted(self._engine, message.model_name, message.model_version):
            if codec.is_slow(message):
                request, parts = await side_thread.submitted(lambda: codec.decode(message, memory))
            else:
                request, parts = codec.decode(message, memory)
            request = with_metadata(context.within(request, context.CALL.get()))._replace(caller=callers.CALL.get())

        def on_done(outcome: Outcome) -> None:
            if answered.done():
                return
            if isinstance(outcome, ServingError):
                answered.set_exception(outcome)
                return
            answered.set_result(outcome)

        job = self._engine.infer(request, on_done)
        try:
            response = await answered
            rows.CALL.set(response.rows)
            if codec.answer_is_slow(response, parts):
                return await side_thread.submitted(lambda: codec.encode(response, memory, parts))
            return codec.encode(response, memory, parts)
        except asyncio.CancelledError:
            job.cancel()
            raise

    async def model_stream_infer(self, requests: AsyncIterator[memoryview], write: Write, metadata: Metadata) -> None:
        """Answer the requests of one stream; `triton_grpc_error: true` ends it with the first error's status."""
        errors_end = metadata.get("triton_grpc_error") == "true"
        stream = InferStream(self._engine, self._known, errors_end=errors_end, memory=self._memory)
        self._streams.add(stream)
        try:
            await stream.run(requests, write)
            rows.CALL.set(stream.rows)
        finally:
            self._streams.discard(stream)


def _answer(
    outcome: Outcome,
    reply: Reply,
    encode: Callable[[InferResponse], bytes],
    parts: codec.Parts = codec.NO_PARTS,
) -> None:
    """Reply with an outcome of the engine, now or later.

    Args:
        encode: raises ServingError for an output that does not fit into its part of shared memory.
    """
    if isinstance(outcome, ServingError):
        reply(outcome)
    elif codec.answer_is_slow(outcome, parts):
        side_thread.then(lambda: (encode(outcome), outcome.rows), reply)
    else:
        try:
            answer: Answered | ServingError = (encode(outcome), outcome.rows)
        except ServingError as error:
            answer = error
        reply(answer)
