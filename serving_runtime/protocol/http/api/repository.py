"""Model repository extension over HTTP: index, load, unload."""

import base64
import binascii
from typing import Any

from serving_runtime.common.errors import InvalidArgument, Unsupported
from serving_runtime.engine.catalog.load_override import FILE_PREFIX
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.api.routes import Call, Route, later
from serving_runtime.protocol.http.wire.message import Response, json_response


def routes(engine: Engine) -> list[Route]:
    """Return the routes to these views."""
    views = _Views(engine)
    return [
        Route("POST", f"/v2/repository{repository}{path}", "model-repository", summary, later(view), takes, gives)
        for path, summary, view, takes, gives in (
            ("/index", "List the models of the repositories with their states", views.index, "IndexRequest", "Index"),
            ("/models/{model}/load", "Load or reload a model", views.load, "LoadRequest", ""),
            ("/models/{model}/unload", "Unload a model", views.unload, "UnloadRequest", ""),
        )
        for repository in ("", "/{repository}")
    ]


class _Views:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def index(self, call: Call) -> Response:
        ready_only = call.content().get("ready", False)
        if type(ready_only) is not bool:
            raise InvalidArgument("the request's 'ready' must be true or false")
        entries = await self._engine.index(ready_only=ready_only, repository=call.names.get("repository", ""))
        return json_response(
            [
                {"name": entry.name, "version": entry.version, "state": entry.state, "reason": entry.reason}
                for entry in entries
            ]
        )

    async def load(self, call: Call) -> Response:
        config, files = None, {}
        for name, value in _parameters(call).items():
            if not isinstance(value, str) or (name != "config" and not name.startswith(FILE_PREFIX)):
                raise InvalidArgument(
                    f"failed to load '{call.model}', parameter '{name}' must be 'config' or 'file:<version>/<file>', "
                    "and a string"
                )
            if name == "config":
                config = value
            else:
                files[name.removeprefix(FILE_PREFIX)] = _bytes(value, name)
        await self._engine.load(call.model, config, files)
        return _DONE

    async def unload(self, call: Call) -> Response:
        dependents = _parameters(call).get("unload_dependents", False)
        if type(dependents) is not bool:
            raise InvalidArgument("parameter 'unload_dependents' must be true or false")
        await self._engine.unload(call.model, dependents=dependents)
        return _DONE


_DONE = Response(200, b"", (), 0)


def _parameters(call: Call) -> dict[str, Any]:
    repository = call.names.get("repository")
    if repository is not None:
        raise Unsupported(f"leave '{repository}' out: a model is found by its name, in whatever repository it is")
    parameters = call.content().get("parameters", {})
    if not isinstance(parameters, dict):
        raise InvalidArgument("the request's 'parameters' must be a JSON object")
    return parameters


def _bytes(text: str, parameter: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidArgument(f"parameter '{parameter}' is not base64: {error}") from error
