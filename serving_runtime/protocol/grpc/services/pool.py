"""gRPC of a model pool: the V2 service of each of its services, by the metadata `fairlead-service`.

    PoolServices  -- metadata -->  PoolService (V2)  -->  ServiceEngine  -- "svc" is ns.svc@3 -->  Engine

A service's callers see one model, the service's own, and nothing of the whole runtime.
"""

import asyncio
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, cast

from serving_runtime import proto
from serving_runtime.common.errors import Forbidden, NotFound, ServingError, Unavailable
from serving_runtime.common.request import Cancellable, InferRequest, OnDone, Streaming
from serving_runtime.engine.servables.servable import Servable
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.pools.directory import Entry, now
from serving_runtime.pools.names import SERVICE_METADATA, VERSION_HEADER, ServiceName, VersionKey, service_in
from serving_runtime.pools.source import ModelPool, number
from serving_runtime.protocol.grpc.methods import DirectMethod, Method, StreamMethod
from serving_runtime.protocol.grpc.services.inference import V2Service
from serving_runtime.protocol.http2.headers.fields import Fields
from serving_runtime.protocol.request_memory import RequestMemory

_KEPT_SERVICES = 2048
_PATH = f"/{V2Service.name}/".encode()


class ServiceEngine:
    """A service's view of the engine, in which its model has the service's name (see Engine).

    Args:
        version: of requests that name none; None for the catalog's default.
    """

    def __init__(self, engine: Engine, pool: ModelPool, service: ServiceName, version: int | None) -> None:
        self.shared_memory = engine.shared_memory
        self.on_switch: Callable[[], None] = lambda: None
        self._engine = engine
        self._pool = pool
        self._service = service
        self._version = version
        self._entry: Entry | None = None
        self._keys: dict[str, str] = {}

    @property
    def ready(self) -> bool:
        return self._engine.ready

    def watch(self, on_switch: Callable[[], None]) -> None:
        self.on_switch = on_switch

    def infer(self, request: InferRequest, on_done: OnDone) -> Cancellable:
        entry = self._entry
        if entry is not None and entry.fresh_until > now():
            key = self._keys.get(request.model_version)
            if key is not None and request.model_name == self._service.service and self._engine.is_loaded(key):
                self._pool.counts.requests += 1
                return self._engine.infer(InferRequest(key, "", *request[2:]), on_done)
        return _Finding(self, request, on_done)

    async def find(self, name: str, version: str, size_bytes: int) -> VersionKey:
        """Return the version of a request once it is loaded; raises ServingError."""
        key = self._key(name, version, await self._pool.look(self._service, self._asked(version)))
        await self._engine.arrive(str(key), size_bytes)
        return key

    def begin(self, key: VersionKey, request: InferRequest, on_done: OnDone) -> Cancellable:
        """Start a request of a loaded version."""
        entry = self._pool.usable(self._service)
        if entry is not self._entry:
            self._entry = entry
            self._keys.clear()
        if len(self._keys) < 256:  # as many as a catalog's document has
            self._keys[request.model_version] = str(key)
        self._pool.counts.requests += 1
        return self._engine.infer(InferRequest(str(key), "", *request[2:]), on_done)

    def sleeps(self, name: str, version: str = "") -> bool:
        """Return whether `arrive` is needed before `stream`; the errors are those of `stream`."""
        try:
            return not self._engine.is_loaded(self._usable_key(name, version))
        except Unavailable:
            return True
        except ServingError:
            return False

    async def arrive(self, name: str, size_bytes: int, version: str = "") -> None:
        await self.find(name, version, size_bytes)

    def stream(self, request: InferRequest, on_done: OnDone) -> Streaming:
        key = self._usable_key(request.model_name, request.model_version)
        self._pool.counts.requests += 1
        return self._engine.stream(InferRequest(key, "", *request[2:]), on_done)

    def servable(self, name: str, version: str = "") -> Servable:
        return self._engine.servable(self._usable_key(name, version))

    def model_ready(self, name: str, version: str = "") -> bool:
        return self._engine.model_ready(self._usable_key(name, version))

    async def answers(self, name: str, version: str) -> bool:
        """Return whether a version answers, now or once it is loaded; raises NotFound for an unknown one."""
        key = self._key(name, version, await self._pool.look(self._service, self._asked(version)))
        return not self._engine.draining and self._pool.failure(key) is None

    def server_metadata(self) -> dict[str, Any]:
        return self._engine.server_metadata()

    def model_metadata(self, name: str, version: str = "") -> dict[str, Any]:
        return self._engine.model_metadata(self._usable_key(name, version))

    async def statistics(self, name: str = "", version: str = "") -> Any:
        entry = await self._pool.look(self._service, self._asked(version))
        return await self._engine.statistics(str(self._key(name or self._service.service, version, entry)))

    async def index(self, **_: object) -> Any:
        raise self._refusal()

    async def load(self, *_: object) -> None:
        raise self._refusal()

    async def unload(self, *_: object, **__: object) -> None:
        raise self._refusal()

    def _refusal(self) -> Forbidden:
        return Forbidden(
            f"service '{self._service.service}' is in a model pool, whose models are loaded by their requests; leave "
            "calls of the model repository out"
        )

    def _usable_key(self, name: str, version: str) -> str:
        entry = self._pool.usable(self._service, self._asked(version))
        if entry is None:
            raise Unavailable(f"the pool's catalog cannot be read for model '{name[:80]}' now; try again")
        key = self._key(name, version, entry)
        failure = self._pool.failure(key)
        if failure is not None:
            raise failure.with_traceback(None)
        return str(key)

    def _key(self, name: str, version: str, entry: Entry) -> VersionKey:
        if name != self._service.service:
            raise NotFound(
                f"the request names model '{name[:80]}', and service '{self._service.service}' has one model, "
                f"'{self._service.service}'"
            )
        return entry.key(self._asked(version))

    def _asked(self, version: str) -> int | None:
        asked = number(version)
        return asked if asked is not None else self._version


class _Finding:
    """A request that waits for the catalog or its model, and then its job."""

    def __init__(self, engine: ServiceEngine, request: InferRequest, on_done: OnDone) -> None:
        self._job: Cancellable | None = None
        self._task = asyncio.get_running_loop().create_task(self._run(engine, request, on_done))

    def cancel(self) -> None:
        self._task.cancel()
        if self._job is not None:
            self._job.cancel()

    async def _run(self, engine: ServiceEngine, request: InferRequest, on_done: OnDone) -> None:
        size_bytes = sum(tensor.array.nbytes for tensor in request.inputs)
        try:
            key = await engine.find(request.model_name, request.model_version, size_bytes)
            self._job = engine.begin(key, request, on_done)
        except ServingError as error:
            on_done(error)


class PoolService(V2Service):
    """The V2 service of one service of the pool; its metadata wait for the model."""

    def __init__(self, engine: ServiceEngine, memory: RequestMemory | None) -> None:
        super().__init__(cast("Engine", engine), memory)
        self.scope = engine

    async def model_ready(self, request: Any) -> Any:
        ready = await self.scope.answers(request.name, request.version)
        return proto.message("inference.ModelReadyResponse")(ready=ready)

    async def model_metadata(self, request: Any) -> Any:
        await self.scope.find(request.name, request.version, 0)
        return await super().model_metadata(request)

    async def model_config(self, request: Any) -> Any:
        await self.scope.find(request.name, request.version, 0)
        return await super().model_config(request)


class PoolServices:
    """The services of a pool, made as calls name them; bounded in number.

    It is among the server's services for `drain` alone.
    """

    name = "pool"
    methods: Mapping[str, Method] = {}
    direct: Mapping[str, DirectMethod] = {}
    streams: Mapping[str, StreamMethod] = {}

    def __init__(self, engine: Engine, pool: ModelPool, memory: RequestMemory | None) -> None:
        self._engine = engine
        self._pool = pool
        self._memory = memory
        self._kept: OrderedDict[tuple[bytes, bytes], PoolService] = OrderedDict()
        self._alive: weakref.WeakSet[PoolService] = weakref.WeakSet()
        engine.watch(self._on_switch)

    def of(self, fields: Fields) -> PoolService | None:
        """Return the service of a call, None for calls of the runtime itself; raises NotFound for metadata of none."""
        by_name = dict(fields)
        if not by_name.get(b":path", b"").startswith(_PATH):
            return None
        named, version = by_name.get(SERVICE_METADATA, b""), by_name.get(VERSION_HEADER, b"")
        found = self._kept.get((named, version))
        if found is None:
            found = self._kept[named, version] = self._made(named, version)
            self._alive.add(found)
            if len(self._kept) > _KEPT_SERVICES:
                self._kept.popitem(last=False)
        self._kept.move_to_end((named, version))
        return found

    def drain(self) -> None:
        for service in tuple(self._alive):
            service.drain()

    def _made(self, named: bytes, version: bytes) -> PoolService:
        service = service_in(named)
        if service is None:
            raise NotFound(
                "this server answers for a model pool; name the service in the metadata fairlead-service: "
                "<namespace>/<service>"
            )
        scope = ServiceEngine(self._engine, self._pool, service, number(version.decode("latin-1")))
        return PoolService(scope, self._memory)

    def _on_switch(self) -> None:
        for service in tuple(self._alive):
            service.scope.on_switch()
