"""Shared memory extension over HTTP (Triton: shared memory extension)."""

from typing import Any

from serving_runtime.common.errors import InvalidArgument, Unsupported
from serving_runtime.engine.memory.shared_memory import SharedMemory
from serving_runtime.protocol.http.api.routes import Call, Route
from serving_runtime.protocol.http.wire.message import Response, json_response

_GROUP = "shared-memory"


def routes(memory: SharedMemory) -> list[Route]:
    """Return the routes to system shared memory, and those that report CUDA shared memory as absent.

    Clients that clean up before they begin list all regions of both kinds, which must not fail.
    """
    views = _Views(memory)
    one, all_, cuda = "/v2/systemsharedmemory/region/{region}", "/v2/systemsharedmemory", "/v2/cudasharedmemory"
    refused = [
        Route(method, f"{cuda}/region/{{region}}/{what}", _GROUP, "Not supported: no CUDA", _no_cuda)
        for method, what in (("GET", "status"), ("POST", "register"), ("POST", "unregister"))
    ]
    return [
        Route("GET", f"{all_}/status", _GROUP, "List registered regions", views.status, gives="Regions"),
        Route("GET", f"{one}/status", _GROUP, "Get a registered region", views.status, gives="Regions"),
        Route("POST", f"{one}/register", _GROUP, "Register a region", views.register, "RegisterRequest", "Object"),
        Route("POST", f"{all_}/unregister", _GROUP, "Unregister all regions", views.unregister, gives="Object"),
        Route("POST", f"{one}/unregister", _GROUP, "Unregister a region", views.unregister, gives="Object"),
        Route(
            "GET",
            f"{cuda}/status",
            _GROUP,
            "List CUDA regions: always empty",
            lambda _call: json_response([]),
            gives="Regions",
        ),
        Route(
            "POST",
            f"{cuda}/unregister",
            _GROUP,
            "Unregister CUDA regions: no effect",
            lambda _call: json_response({}),
            gives="Object",
        ),
        *refused,
    ]


class _Views:
    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory

    def status(self, call: Call) -> Response:
        return json_response([region._asdict() for region in self._memory.status(call.names.get("region", ""))])

    def register(self, call: Call) -> Response:
        content = call.content()
        key = content.get("key")
        if type(key) is not str:
            raise InvalidArgument("the request must have a string 'key', the name of the shared memory object")
        offset, byte_size = _number(content, "offset", default=0), _number(content, "byte_size")
        self._memory.register(call.names["region"], key, offset, byte_size)
        return json_response({})

    def unregister(self, call: Call) -> Response:
        self._memory.unregister(call.names.get("region", ""))
        return json_response({})


def _number(content: dict[str, Any], name: str, *, default: int | None = None) -> int:
    value = content.get(name, default)
    if type(value) is not int or not 0 <= value < 2**63:
        raise InvalidArgument(f"the request's '{name}' must be a number of bytes")
    return value


def _no_cuda(_call: Call) -> Response:
    raise Unsupported("CUDA shared memory is not supported: models run on the CPU; use system shared memory")
