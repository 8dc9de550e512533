"""Settings that may be changed while the server runs, over gRPC (Triton: logging extension)."""

from typing import Any

from serving_runtime import proto
from serving_runtime.protocol.grpc.methods import Method, StreamMethod
from serving_runtime.telemetry.logsettings import LogControl


class SettingsService:
    """Answers LogSettings; raises ServingError."""

    name = "inference.GRPCInferenceService"

    def __init__(self, log: LogControl) -> None:
        self._log = log
        self.streams: dict[str, StreamMethod] = {}
        self.methods: dict[str, Method] = {"LogSettings": self.log_settings}

    def drain(self) -> None:
        """There are no streams to end."""

    async def log_settings(self, request: Any) -> Any:
        """Change what the request names; return all settings."""
        changes = {}
        for name in request.settings:
            choice = request.settings[name].WhichOneof("parameter_choice")
            changes[name] = getattr(request.settings[name], choice) if choice is not None else None
        self._log.update(changes)
        response = proto.message("inference.LogSettingsResponse")()
        for name, value in self._log.settings.shown().items():
            setattr(response.settings[name], _FIELDS[type(value)], value)
        return response


_FIELDS = {bool: "bool_param", int: "uint32_param", str: "string_param"}
