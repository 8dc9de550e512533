"""Settings that may be changed while the server runs, over HTTP (Triton: logging extension)."""

from serving_runtime.protocol.http.message import Response, json_response
from serving_runtime.protocol.http.routes import Call, Route
from serving_runtime.telemetry.logsettings import LogControl


def routes(log: LogControl) -> list[Route]:
    """Return the routes to these views."""
    views = _Views(log)
    return [
        Route("GET", "/v2/logging", "logging", "the log's settings", views.log, gives="LogSettings"),
        Route(
            "POST",
            "/v2/logging",
            "logging",
            "change the log's settings",
            views.change_log,
            "LogSettings",
            "LogSettings",
        ),
    ]


class _Views:
    def __init__(self, log: LogControl) -> None:
        self._log = log

    def log(self, _call: Call) -> Response:
        return json_response(self._log.settings.shown())

    def change_log(self, call: Call) -> Response:
        self._log.update(call.content())
        return json_response(self._log.settings.shown())
