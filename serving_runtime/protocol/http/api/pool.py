"""Paths of a model pool: /serving/<namespace>/<service>/… to the model version that answers.

    /serving/ns/svc/v2/models/svc/infer  --(header, path or default: version 3)-->  /v2/models/ns.svc@3/infer

A path without that prefix is of the service in the header `fairlead-service`, as calls of gRPC are. The rest is the V2
application's. Only paths of the service's own model lead there: a service's callers can reach neither other models nor
what belongs to the whole runtime, such as its repository and its log.
"""

import asyncio
import logging
import re
from typing import Any, NamedTuple

from serving_runtime.common.errors import NotFound, ServingError
from serving_runtime.common.request import Cancellable
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.pools.directory import Entry, now
from serving_runtime.pools.names import SERVICE_METADATA, VERSION_HEADER, ServiceName, VersionKey, mounted, service_in
from serving_runtime.pools.source import ModelPool, number
from serving_runtime.protocol.http.wire.message import (
    Application,
    Reply,
    Request,
    Response,
    error_response,
    json_response,
    text_error,
)

logger = logging.getLogger(__name__)

_KEPT_PATHS = 16384
_OWN = re.compile(rb"/v2/?|/v2/health/(?:live|ready)")
"""Paths of the runtime itself, which no model answers."""
_MODEL = re.compile(rb"/(v[12])/models/([^/:]+)(?:/versions/([^/:]+))?((?:[/:].*)?)", re.DOTALL)
_METADATA = frozenset((b"", b"/", b"/config"))
"""Ends of paths of a model that answer from a loaded one."""


_OURS = frozenset((SERVICE_METADATA, VERSION_HEADER))


def keeps_header(name: bytes) -> bool:
    """Return whether a header is needed to find the service or the version."""
    return name.lower() in _OURS


class _Path(NamedTuple):
    """A known path of a model version, good while its entry is fresh and the version is loaded."""

    entry: Entry
    target: bytes
    key: str


class _Wanted(NamedTuple):
    """A path of a service's model.

    Attributes:
        version: in the path or the header; None for the default.
        ending: what follows the model and its version.
    """

    service: ServiceName
    protocol: bytes
    version: int | None
    ending: bytes
    query: bytes

    def needs_model(self, request: Request) -> bool:
        """Return whether only a loaded model answers."""
        return request.method == b"POST" or (self.ending in _METADATA and self.protocol == b"v2")

    def target(self, key: VersionKey) -> bytes:
        return b"/%b/models/%b%b%b" % (self.protocol, str(key).encode(), self.ending, self.query)


class PoolApplication:
    """Finds the model version of each request, and passes it to the V2 application."""

    def __init__(self, inner: Application, engine: Engine, pool: ModelPool) -> None:
        self._inner = inner
        self._engine = engine
        self._pool = pool
        self._counts = pool.counts
        self._paths: dict[tuple[bytes, bytes, bytes], _Path] = {}

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        named, version = _names(request)
        known = self._paths.get((request.target, named, version))
        if known is not None and known.entry.fresh_until > now() and self._engine.is_loaded(known.key):
            self._counts.requests += 1
            return self._inner.handle(_moved(request, known.target), reply)
        path, mark, query = request.target.partition(b"?")
        found = mounted(path)
        service, rest = found if found is not None else (service_in(named), path)
        if service is None:
            if _OWN.fullmatch(path) is None:
                raise NotFound(
                    "this server answers for a model pool; use the path /serving/<namespace>/<service>/v2/models/"
                    "<service>/infer, or name the service in the header fairlead-service: <namespace>/<service>"
                )
            return self._inner.handle(request, reply)
        if _OWN.fullmatch(rest) is not None:
            return self._inner.handle(_moved(request, rest + mark + query), reply)
        if rest in (b"/v2/models", b"/v1/models") and request.method == b"GET":
            return _Looking(self, request, reply, None, service).begun()
        wanted = _wanted(service, rest, version, mark + query)
        entry = self._pool.usable(service, wanted.version)
        if entry is None or (
            wanted.needs_model(request) and not self._engine.is_loaded(str(entry.key(wanted.version)))
        ):
            return _Looking(self, request, reply, wanted, service).begun()
        return self.answer(request, reply, wanted, entry)

    def answer(self, request: Request, reply: Reply, wanted: _Wanted, entry: Entry) -> Cancellable | None:
        """Answer from the model version of a usable entry; raises ServingError."""
        key = entry.key(wanted.version)
        if request.method == b"GET" and (wanted.protocol, wanted.ending) in ((b"v2", b"/ready"), (b"v1", b"")):
            reply(self._status(wanted, key))
            return None
        target = wanted.target(key)
        if request.method == b"POST":
            self._counts.requests += 1
            if len(self._paths) >= _KEPT_PATHS:
                self._paths.clear()
            self._paths[request.target, *_names(request)] = _Path(entry, target, str(key))
        return self._inner.handle(_moved(request, target), reply)

    async def find(
        self, request: Request, reply: Reply, wanted: _Wanted | None, service: ServiceName
    ) -> Response | Cancellable | None:
        """Answer once the catalog has been looked at, and for metadata once the model is loaded."""
        entry = await self._pool.look(service, wanted.version if wanted is not None else None)
        if wanted is None:
            return json_response({"models": [service.service]})
        if wanted.needs_model(request):
            await self._engine.arrive(str(entry.key(wanted.version)), len(request.body) - request.body_offset)
        return self.answer(request, reply, wanted, entry)

    def _status(self, wanted: _Wanted, key: VersionKey) -> Response:
        """Return whether a version answers, now or once it is loaded; asking loads nothing."""
        ready = not self._engine.draining and self._pool.failure(key) is None
        content: dict[str, Any] = {"name": key.service, "ready": ready}
        if wanted.protocol == b"v2":
            return json_response(content, 200 if ready else 400)
        status = {"error_code": "OK", "error_message": ""}
        state = "AVAILABLE" if ready else "START"
        content["model_version_status"] = [{"version": str(key.version), "state": state, "status": status}]
        return json_response(content)


class _Looking:
    """A request that waits for the catalog, and then its answer's job."""

    def __init__(
        self, pool: PoolApplication, request: Request, reply: Reply, wanted: _Wanted | None, service: ServiceName
    ) -> None:
        self._pool = pool
        self._request = request
        self._reply = reply
        self._wanted = wanted
        self._service = service
        self._job: Cancellable | None = None
        self._task: asyncio.Task[None]

    def begun(self) -> "_Looking":
        self._task = asyncio.get_running_loop().create_task(self._run())
        return self

    def cancel(self) -> None:
        self._task.cancel()
        if self._job is not None:
            self._job.cancel()

    async def _run(self) -> None:
        answer: Response | Cancellable | None
        try:
            answer = await self._pool.find(self._request, self._reply, self._wanted, self._service)
        except ServingError as error:
            answer = error_response(error)
        except Exception:  # a bug: the client gets an error, the log the details
            logger.exception("answering %r failed", self._request.target[:200])
            answer = text_error(500, "internal error")
        if isinstance(answer, Response):
            self._reply(answer)
        else:
            self._job = answer


def _wanted(service: ServiceName, rest: bytes, version: bytes, query: bytes) -> _Wanted:
    """Return the model version in the rest of a service's path; raises NotFound."""
    found = _MODEL.fullmatch(rest)
    if found is None or found[2] == b"stats" != service.service.encode():
        raise NotFound(f"there is nothing at {rest[:200].decode('latin-1')} of service '{service.service}'")
    if found[2] != service.service.encode():
        raise NotFound(
            f"the path names model '{found[2][:80].decode('latin-1')}', and service '{service.service}' has one model, "
            f"'{service.service}'"
        )
    asked = (found[3] or version).decode("latin-1")
    return _Wanted(service, found[1], number(asked), found[4], query)


def _names(request: Request) -> tuple[bytes, bytes]:
    """Return what the headers name: service and version, each empty where they do not."""
    named = version = b""
    for name, value in request.headers:
        lowered = name.lower()
        if lowered == VERSION_HEADER:
            version = value
        elif lowered == SERVICE_METADATA:
            named = value
    return named, version


def _moved(request: Request, target: bytes) -> Request:
    """Return the same request at another path, without the headers that chose it."""
    headers = request.headers
    if headers:
        headers = tuple([header for header in headers if header[0].lower() not in _OURS])
    return Request(
        request.method, target, request.body, request.body_offset, request.json_length, request.accept_encoding,
        headers, request.http_1_0, request.window_bits, request.caller, request.caller_limit,
    )  # fmt: skip
