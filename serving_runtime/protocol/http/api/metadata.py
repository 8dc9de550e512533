"""Health, metadata, configuration and statistics endpoints over HTTP."""

from serving_runtime.config.text import as_json
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.api.routes import Call, Route, later, of_versions
from serving_runtime.protocol.http.wire.message import Response, json_response


def routes(engine: Engine) -> list[Route]:
    """Return the routes to these views."""
    views = _Views(engine)
    return [
        Route("GET", "/v2/health/live", "health", "Check server liveness", views.live, gives="Live"),
        Route("GET", "/v2/health/ready", "health", "Check server readiness", views.ready, gives="Ready"),
        *of_versions("GET", "/ready", "health", "Check model readiness", views.model_ready, gives="Ready"),
        Route("GET", "/v2", "metadata", "Get server metadata: name, version, extensions", views.server, gives="Server"),
        Route("GET", "/v2/models", "metadata", "List the names of ready models", views.models, gives="Models"),
        *of_versions("GET", "", "metadata", "Get model metadata: inputs and outputs", views.metadata, gives="Model"),
        *of_versions(
            "GET", "/config", "model-config", "Get the completed model configuration", views.config, gives="Config"
        ),
        Route(
            "GET",
            "/v2/models/stats",
            "statistics",
            "Get statistics of all models",
            later(views.all_statistics),
            gives="Statistics",
        ),
        *of_versions(
            "GET", "/stats", "statistics", "Get statistics of a model", later(views.statistics), gives="Statistics"
        ),
    ]


class _Views:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def live(self, _call: Call) -> Response:
        return json_response({"live": True})

    def ready(self, _call: Call) -> Response:
        ready = self._engine.ready
        return json_response({"ready": ready}, 200 if ready else 400)

    def server(self, _call: Call) -> Response:
        return json_response(self._engine.server_metadata())

    def models(self, _call: Call) -> Response:
        """List names only, as KServe's servers do."""
        return json_response({"models": self._engine.ready_names()})

    def metadata(self, call: Call) -> Response:
        return json_response(self._engine.model_metadata(call.model, call.version))

    def model_ready(self, call: Call) -> Response:
        name = self._engine.servable(call.model, call.version).name
        ready = self._engine.model_ready(call.model, call.version)
        return json_response({"name": name, "ready": ready}, 200 if ready else 400)

    def config(self, call: Call) -> Response:
        return json_response(as_json(self._engine.servable(call.model, call.version).message))

    async def all_statistics(self, _call: Call) -> Response:
        return json_response(as_json(await self._engine.statistics()))

    async def statistics(self, call: Call) -> Response:
        return json_response(as_json(await self._engine.statistics(call.model, call.version)))
