"""gRPC health checking service, for Kubernetes' probes and for clients that watch."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from serving_runtime import proto
from serving_runtime.common.errors import NotFound, Unavailable
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.grpc.methods import DirectMethod, Metadata, Method, StreamMethod, Write
from serving_runtime.protocol.grpc.policy import parsed

SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3
"""grpc.health.v1.HealthCheckResponse.ServingStatus."""

_KNOWN = ("", "inference.GRPCInferenceService")

_LOOK_S = 0.2
"""Interval of readiness checks for watching clients."""

_Request = proto.message("grpc.health.v1.HealthCheckRequest")
_Response = proto.message("grpc.health.v1.HealthCheckResponse")


class HealthService:
    """Reports whether the server accepts requests, as a whole ("") and for the V2 service, which is the same."""

    name = "grpc.health.v1.Health"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._draining = asyncio.Event()
        self.methods: dict[str, Method] = {"Check": self.check}
        self.direct: dict[str, DirectMethod] = {}
        self.streams: dict[str, StreamMethod] = {"Watch": self.watch}

    def drain(self) -> None:
        self._draining.set()

    async def check(self, request: Any) -> Any:
        """Return the status; raises NotFound for an unknown service."""
        if request.service not in _KNOWN:
            raise NotFound(f"unknown service '{request.service}'")
        return _Response(status=self._status(request.service))

    async def watch(self, requests: AsyncIterator[memoryview], write: Write, _metadata: Metadata) -> None:
        """Write the status now and whenever it changes; at the end NOT_SERVING, and raises Unavailable."""
        async for content in requests:
            service = parsed(_Request, content).service
            sent = None
            while True:
                status = self._status(service)
                if status != sent:
                    await write(_Response(status=status).SerializeToString())
                    sent = status
                if self._draining.is_set():
                    raise Unavailable("the server is stopping")
                await self._pause()

    def _status(self, service: str) -> int:
        if service not in _KNOWN:
            return SERVICE_UNKNOWN
        return SERVING if self._engine.ready else NOT_SERVING

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(_LOOK_S):
                await self._draining.wait()
        except TimeoutError:
            return
