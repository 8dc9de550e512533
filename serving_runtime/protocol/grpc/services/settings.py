"""Log and trace settings over gRPC (Triton: logging and trace extensions)."""

from typing import Any

from serving_runtime import proto
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.grpc.methods import DirectMethod, Method, StreamMethod
from serving_runtime.protocol.settings import RuntimeSettings

_FIELDS = {bool: "bool_param", int: "uint32_param", str: "string_param"}


class SettingsService:
    """Answers LogSettings and TraceSetting; they raise ServingError."""

    name = "inference.GRPCInferenceService"

    def __init__(self, engine: Engine, settings: RuntimeSettings) -> None:
        self._engine = engine
        self._settings = settings
        self.direct: dict[str, DirectMethod] = {}
        self.streams: dict[str, StreamMethod] = {}
        self.methods: dict[str, Method] = {"LogSettings": self.log_settings, "TraceSetting": self.trace_setting}

    def drain(self) -> None:
        """Do nothing: this service has no streams."""

    async def log_settings(self, request: Any) -> Any:
        """Apply the request's changes; return all settings."""
        changes = {}
        for name in request.settings:
            choice = request.settings[name].WhichOneof("parameter_choice")
            changes[name] = getattr(request.settings[name], choice) if choice is not None else None
        if changes:
            await self._settings.change_log(changes)
        response = proto.message("inference.LogSettingsResponse")()
        for name, value in self._settings.log.settings.shown().items():
            setattr(response.settings[name], _FIELDS[type(value)], value)
        return response

    async def trace_setting(self, request: Any) -> Any:
        """Apply the request's changes, to a model or to all; no value resets a setting. Return all settings."""
        tracer = self._settings.tracer
        model = self._engine.servable(request.model_name).name if request.model_name else ""
        given = {name: list(request.settings[name].value) for name in request.settings}
        changes = {name: _plain(name, values) for name, values in given.items()}
        if changes:
            await self._settings.change_trace(changes, model)
        response = proto.message("inference.TraceSettingResponse")()
        for name, value in tracer.shown(model).items():
            response.settings[name].value.extend([value] if isinstance(value, str) else value)
        return response


def _plain(name: str, values: list[str]) -> Any:
    """Return a setting's values in the tracer's form: None without values, a list of levels, else the one value."""
    if not values:
        return None
    return values if name == "trace_level" or len(values) > 1 else values[0]
