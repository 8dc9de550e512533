"""Admin calls of a model pool, beside its metrics: load a version before its first request.

POST /v2/repository/models/<namespace>.<service>@<version>/load answers once the version is loaded.
"""

import re
from urllib.parse import unquote

from serving_runtime.common.request import Cancellable
from serving_runtime.pools.source import ModelPool
from serving_runtime.protocol.http.api.routes import Call, later
from serving_runtime.protocol.http.wire.message import Application, Reply, Request, Response, text_error

_LOAD = re.compile(rb"/v2/repository/models/([^/?]+)/load")


class PoolAdmin:
    """Answers admin calls, and passes all else to the metrics application."""

    def __init__(self, metrics: Application, pool: ModelPool) -> None:
        self._metrics = metrics
        self._pool = pool
        self._load = later(self._loaded)

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        found = _LOAD.fullmatch(request.target)
        if found is None:
            return self._metrics.handle(request, reply)
        if request.method != b"POST":
            reply(text_error(405, "this path takes POST only", b"Allow: POST\r\n"))
            return None
        self._load(Call(request, reply, {"model": unquote(found[1].decode("latin-1"))}))
        return None

    async def _loaded(self, call: Call) -> Response:
        await self._pool.prefetch(call.model)
        return Response(200, b"", (), 0)
