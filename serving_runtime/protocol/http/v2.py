"""The V2 paths: which handler answers which.

GET  /v2/health/live | /v2/health/ready
GET  /v2
GET  /v2/models/{model}[/versions/{version}][/ready | /config | /stats]
GET  /v2/models/stats
POST /v2/models/{model}[/versions/{version}]/infer
POST /v2/repository/index
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import orjson

from serving_runtime.config.text import as_json
from serving_runtime.engine.engine import Engine
from serving_runtime.engine.statistics import statistics_message
from serving_runtime.errors import InvalidArgument, NotFound, ServingError
from serving_runtime.protocol.http.infer import InferCodec, encode
from serving_runtime.protocol.http.message import (
    Cancellable,
    Reply,
    Request,
    Response,
    error_response,
    json_response,
    text_error,
)
from serving_runtime.request import Outcome

_ModelView = Callable[[str, str], Response]


class V2Application:
    """The V2 protocol over HTTP for one engine. Paths of loaded models are looked up whole, all others are parted."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._infer_codecs: dict[bytes, InferCodec] = {}
        self._server_views: dict[str, Callable[[], Response]] = {
            "v2": self._server,
            "v2/health/live": self._live,
            "v2/health/ready": self._ready,
        }
        self._model_views: dict[str, _ModelView] = {
            "": self._metadata,
            "ready": self._model_ready,
            "config": self._config,
            "stats": self._stats,
        }

    def know(self, model: str, version: str) -> None:
        """Make the infer paths of a loaded model known, so that they need no parting."""
        for path, key in ((model, ""), (f"{model}/versions/{version}", version)):
            self._infer_codecs[f"/v2/models/{path}/infer".encode()] = InferCodec(model, key)

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        codec = self._infer_codecs.get(request.target)
        if codec is not None and request.method == b"POST":
            return self._infer(codec, request, reply)
        parts = [unquote(part) for part in request.target.split(b"?", 1)[0].decode("latin-1").split("/")[1:]]
        if parts and parts[-1] == "":
            parts.pop()
        if parts[:2] == ["v2", "models"] and parts[-1] == "infer" and len(parts) in (4, 6):
            if request.method != b"POST":
                reply(_wrong_method("POST"))
                return None
            return self._infer(InferCodec(*_model_and_version(parts[2:-1])), request, reply)
        reply(self._plain(parts, request))
        return None

    def _infer(self, codec: InferCodec, request: Request, reply: Reply) -> Cancellable | None:
        decoded, head = codec.decode(request)

        def answer(outcome: Outcome) -> None:
            if isinstance(outcome, ServingError):
                reply(error_response(outcome))
                return
            try:
                response = encode(outcome, head)
            except ServingError as error:
                response = error_response(error)
            reply(response)

        return self._engine.infer(decoded, answer)

    def _plain(self, parts: list[str], request: Request) -> Response:
        """Return the answer of every path but infer."""
        post = parts[:2] == ["v2", "repository"] and parts[-1] == "index" and len(parts) in (3, 4)
        if parts[:1] == ["v2"] and request.method != (b"POST" if post else b"GET"):
            return _wrong_method("POST" if post else "GET")
        if post:
            return self._index(request)
        if parts[:2] == ["v2", "models"] and len(parts) > 2:
            return self._model_view(parts[2:])
        view = self._server_views.get("/".join(parts))
        if view is None:
            raise NotFound(f"there is nothing at {request.target.decode('latin-1')[:200]}")
        return view()

    def _model_view(self, path: list[str]) -> Response:
        if path == ["stats"]:
            return self._stats("", "")
        what = path.pop() if len(path) in (2, 4) else ""
        view = self._model_views.get(what)
        if view is None:
            raise NotFound(f"there is nothing at /v2/models/{'/'.join([*path, what])[:200]}")
        return view(*_model_and_version(path))

    def _live(self) -> Response:
        return json_response({"live": True})

    def _ready(self) -> Response:
        ready = self._engine.ready
        return json_response({"ready": ready}, 200 if ready else 400)

    def _server(self) -> Response:
        return json_response(self._engine.server_metadata())

    def _metadata(self, model: str, version: str) -> Response:
        return json_response(self._engine.model_metadata(model, version))

    def _model_ready(self, model: str, version: str) -> Response:
        self._engine.servable(model, version)
        ready = self._engine.model_ready(model, version)
        return json_response({"name": model, "ready": ready}, 200 if ready else 400)

    def _config(self, model: str, version: str) -> Response:
        return json_response(as_json(self._engine.servable(model, version).message))

    def _stats(self, model: str, version: str) -> Response:
        return json_response(as_json(statistics_message(self._engine.selected(model, version))))

    def _index(self, request: Request) -> Response:
        ready_only: Any = False
        body = memoryview(request.body)[request.body_offset :]
        if len(body):
            try:
                content = orjson.loads(body)
            except orjson.JSONDecodeError as error:
                raise InvalidArgument(f"the request is not valid JSON: {error}") from error
            ready_only = content.get("ready", False) if isinstance(content, dict) else None
            if type(ready_only) is not bool:
                raise InvalidArgument("the request must be a JSON object; its 'ready' must be true or false")
        return json_response(
            [
                {"name": entry.name, "version": entry.version, "state": entry.state, "reason": entry.reason}
                for entry in self._engine.index(ready_only=ready_only)
            ]
        )


def _model_and_version(path: list[str]) -> tuple[str, str]:
    """Return model and version of ["m"] or ["m", "versions", "1"]; raises NotFound for any other path."""
    if len(path) == 1:
        return path[0], ""
    if len(path) == 3 and path[1] == "versions":
        return path[0], path[2]
    raise NotFound(f"there is nothing at /v2/models/{'/'.join(path)[:200]}")


def _wrong_method(allowed: str) -> Response:
    return text_error(405, f"this path takes {allowed} only", f"Allow: {allowed}\r\n".encode())
