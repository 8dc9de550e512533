"""Runtime settings of logging and tracing, which clients of both protocols may change."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import orjson

from serving_runtime.telemetry.log_settings import LogControl, LogSettings
from serving_runtime.telemetry.tracing.settings import TraceOptions
from serving_runtime.telemetry.tracing.tracer import Tracer
from serving_runtime.telemetry.tracing.triton_file import TritonFile

Carry: TypeAlias = Callable[[str, bytes], Awaitable[bytes]]
"""Runs a named operation with a payload in all workers of the server; raises ServingError."""

LOG, TRACE = "log", "trace"


class RuntimeSettings(NamedTuple):
    """The log's settings, and the tracer's.

    Attributes:
        carry: passes changes to all processes of one server, which share their settings.
    """

    log: LogControl
    tracer: Tracer
    carry: Carry | None = None

    async def change_log(self, changes: Mapping[str, Any]) -> None:
        """Change the log's settings; raises InvalidArgument."""
        await self._change(LOG, self.change_log_here, changes)

    async def change_trace(self, changes: Mapping[str, Any], model: str) -> None:
        """Change which requests to a model, or to all for no name, are traced; raises InvalidArgument."""
        await self._change(TRACE, self.change_trace_here, {"model": model, "changes": changes})

    async def _change(self, what: str, here: Callable[[bytes], Awaitable[bytes]], content: Mapping[str, Any]) -> None:
        payload = orjson.dumps(content)
        await (here(payload) if self.carry is None else self.carry(what, payload))

    async def change_log_here(self, payload: bytes) -> bytes:
        self.log.update(orjson.loads(payload))
        return b""

    async def change_trace_here(self, payload: bytes) -> bytes:
        content = orjson.loads(payload)
        self.tracer.update(content["changes"], content["model"])
        return b""


def defaults() -> RuntimeSettings:
    """Return settings that write nothing: for an application without a server."""
    return RuntimeSettings(LogControl(LogSettings()), Tracer(TraceOptions(), TritonFile("")))
