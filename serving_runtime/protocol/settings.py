"""What both protocols let clients change while the server runs."""

from typing import NamedTuple

from serving_runtime.telemetry.logsettings import LogControl, LogSettings
from serving_runtime.telemetry.tracing.settings import TraceOptions
from serving_runtime.telemetry.tracing.tracer import Tracer
from serving_runtime.telemetry.tracing.triton_file import TritonFile


class RuntimeSettings(NamedTuple):
    """The log's settings, and the tracer's."""

    log: LogControl
    tracer: Tracer


def defaults() -> RuntimeSettings:
    """Return settings that write nothing anywhere: for an application that stands alone."""
    return RuntimeSettings(LogControl(LogSettings()), Tracer(TraceOptions(), TritonFile("")))
