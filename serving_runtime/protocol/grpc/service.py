"""The V2 service and the standard health service: one coroutine per method, from message to message.

Knows messages and the engine; server.py wires `methods` to grpcio.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from serving_runtime import proto
from serving_runtime.engine.engine import Engine
from serving_runtime.engine.statistics import statistics_message
from serving_runtime.errors import NotFound, ServingError
from serving_runtime.protocol.grpc import codec, repository
from serving_runtime.request import InferResponse, Outcome

SERVING, NOT_SERVING = 1, 2
"""grpc.health.v1.HealthCheckResponse.ServingStatus."""

V2, HEALTH = "inference.GRPCInferenceService", "grpc.health.v1.Health"

Method: TypeAlias = Callable[[Any], Awaitable[Any]]


class V2Service:
    """Answers the methods of inference.GRPCInferenceService and grpc.health.v1.Health; raises ServingError.

    Attributes:
        methods: what is offered, by service and name of the .proto files.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self.methods: Mapping[str, Mapping[str, Method]] = {
            V2: {
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
            },
            HEALTH: {"Check": self.health_check},
        }

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
        return statistics_message(self._engine.selected(request.name, request.version))

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

    async def model_infer(self, request: Any) -> Any:
        """Return the answer of the model; when the call is cancelled its request leaves the queue."""
        answered: asyncio.Future[InferResponse] = self._loop.create_future()

        def on_done(outcome: Outcome) -> None:
            if answered.done():
                return
            if isinstance(outcome, ServingError):
                answered.set_exception(outcome)
            else:
                answered.set_result(outcome)

        job = self._engine.infer(codec.decode(request), on_done)
        try:
            return codec.encode(await answered)
        except asyncio.CancelledError:
            job.cancel()
            raise

    async def health_check(self, request: Any) -> Any:
        """Return SERVING or NOT_SERVING for the server as a whole ("") and for the V2 service."""
        if request.service not in ("", V2):
            raise NotFound(f"unknown service '{request.service}'")
        status = SERVING if self._engine.ready else NOT_SERVING
        return proto.message("grpc.health.v1.HealthCheckResponse")(status=status)
