"""The metrics page, on a port of its own."""

from serving_runtime.engine.engine import Engine
from serving_runtime.protocol.http.message import Cancellable, Reply, Request, Response, text_error
from serving_runtime.telemetry.exposition import CONTENT_TYPE, render

_HEADERS = f"Content-Type: {CONTENT_TYPE}\r\n".encode()


class MetricsApplication:
    """Answers GET /metrics."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        if request.target.split(b"?", 1)[0] != b"/metrics":
            reply(text_error(404, "there is nothing here but /metrics"))
        elif request.method != b"GET":
            reply(text_error(405, "this path takes GET only", b"Allow: GET\r\n"))
        else:
            page = render(self._engine.series()).encode()
            reply(Response(200, _HEADERS, (page,), len(page)))
        return None
