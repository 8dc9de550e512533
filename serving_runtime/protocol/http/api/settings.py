"""Log and trace settings over HTTP (Triton: logging and trace extensions)."""

from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.api.routes import Call, Route, later
from serving_runtime.protocol.http.wire.message import Response, json_response
from serving_runtime.protocol.settings import RuntimeSettings


def routes(engine: Engine, settings: RuntimeSettings) -> list[Route]:
    """Return the routes to these views."""
    views = _Views(engine, settings)
    log, trace = "LogSettings", "TraceSettings"
    every, one = "/v2/trace/setting", "/v2/models/{model}/trace/setting"
    return [
        Route("GET", "/v2/logging", "logging", "Get log settings", views.log, gives=log),
        Route("POST", "/v2/logging", "logging", "Change log settings", later(views.change_log), log, log),
        Route("GET", every, "trace", "Get trace settings", views.trace, gives=trace),
        Route("POST", every, "trace", "Change trace settings", later(views.change_trace), trace, trace),
        Route("GET", one, "trace", "Get trace settings of a model", views.trace, gives=trace),
        Route(
            "POST",
            one,
            "trace",
            "Change trace settings of a model; null resets a setting",
            later(views.change_trace),
            trace,
            trace,
        ),
    ]


class _Views:
    def __init__(self, engine: Engine, settings: RuntimeSettings) -> None:
        self._engine = engine
        self._settings = settings

    def log(self, _call: Call) -> Response:
        return json_response(self._settings.log.settings.shown())

    async def change_log(self, call: Call) -> Response:
        await self._settings.change_log(call.content())
        return self.log(call)

    def trace(self, call: Call) -> Response:
        return json_response(self._settings.tracer.shown(self._model(call)))

    async def change_trace(self, call: Call) -> Response:
        await self._settings.change_trace(call.content(), self._model(call))
        return self.trace(call)

    def _model(self, call: Call) -> str:
        """Return the model in the path, empty for all; raises NotFound for an absent one."""
        name = call.names.get("model", "")
        return self._engine.servable(name).name if name else ""
