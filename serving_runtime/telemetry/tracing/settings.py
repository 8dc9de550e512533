"""Trace settings and sampling (Triton: trace extension); may change while the server runs, for all models or one.

Values are shown and given as strings, the levels as a list of them; none (JSON null, an empty list in gRPC) resets a
setting: a model's to that of all models, that of all models to the command line's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.shared.egress import OTLP_URL

TRITON, OPENTELEMETRY = "triton", "opentelemetry"

OFF, TIMESTAMPS, TENSORS = LEVELS = ("OFF", "TIMESTAMPS", "TENSORS")


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """Trace settings of one model's requests.

    Attributes:
        levels: TIMESTAMPS and TENSORS; empty for no tracing (OFF).
        rate: one of so many requests is traced.
        count: how many more are traced, -1 for any number.
        log_frequency: of mode triton: a new file after so many, 0 for one file.
    """

    levels: tuple[str, ...] = ()
    rate: int = 1000
    count: int = -1
    log_frequency: int = 0


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Trace options of the command line.

    Attributes:
        mode: TRITON for a JSON file, OPENTELEMETRY for spans to a collector.
        file: of mode triton; may be empty.
        url: of the collector's OTLP/HTTP traces.
        through: a Unix socket to the collector; empty to connect to its host.
        resource: attributes of the spans' resource.
        batching: of the span processor, by the names of --trace-config.
        by_variable: FAIRLEAD_OTLP_ENDPOINT names the collector; a runtime without the SDK serves nevertheless.
    """

    mode: str = TRITON
    settings: TraceSettings = field(default_factory=TraceSettings)
    file: str = ""
    url: str = OTLP_URL
    through: str = ""
    resource: Mapping[str, str] = field(default_factory=dict)
    batching: Mapping[str, int] = field(default_factory=dict)
    by_variable: bool = False


_NUMBERS = {"trace_rate": ("rate", 1), "trace_count": ("count", -1), "log_frequency": ("log_frequency", 0)}
"""By name: the attribute and its minimum."""


def changed(settings: TraceSettings, fallback: TraceSettings, changes: Mapping[str, Any]) -> TraceSettings:
    """Return settings with some of them changed or reset; raises InvalidArgument for invalid ones."""
    for name, value in changes.items():
        if name == "trace_level":
            settings = replace(settings, levels=fallback.levels if value is None else _levels(value))
        elif name in _NUMBERS:
            attribute, least = _NUMBERS[name]
            number: Any = getattr(fallback, attribute) if value is None else _number(name, value, least)
            settings = replace(settings, **{attribute: number})
        elif name in ("trace_file", "trace_mode"):
            raise InvalidArgument(f"{name} is chosen by --trace-config; it cannot be changed while the server runs")
        else:
            known = ", ".join(("trace_level", *_NUMBERS))
            raise InvalidArgument(f"there is no trace setting '{name}'; there are {known}")
    return settings


def shown(settings: TraceSettings, options: TraceOptions) -> dict[str, str | list[str]]:
    """Return settings as the protocols show them."""
    found: dict[str, str | list[str]] = {
        "trace_level": list(settings.levels) or [OFF],
        "trace_rate": str(settings.rate),
        "trace_count": str(settings.count),
        "trace_mode": options.mode,
    }
    if options.mode == TRITON:
        return {**found, "log_frequency": str(settings.log_frequency), "trace_file": options.file}
    return {**found, "url": options.url}


def check_mode(options: TraceOptions, settings: TraceSettings) -> None:
    """Raise InvalidArgument for levels that the mode does not support."""
    if options.mode == OPENTELEMETRY and TENSORS in settings.levels:
        raise InvalidArgument("trace_level TENSORS needs mode=triton: spans hold no tensors")


def _levels(value: Any) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    known = isinstance(given, Sequence) and bool(given) and all(level in LEVELS for level in given)
    if not known or (OFF in given and len(given) > 1):
        raise InvalidArgument(f"trace_level must be {OFF}, or of {TIMESTAMPS} and {TENSORS}, found {value!r}")
    return tuple(level for level in (TIMESTAMPS, TENSORS) if level in given)


def _number(name: str, value: Any, least: int) -> int:
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if type(number) is not int or not least <= number < 2**31:
        raise InvalidArgument(f"{name} must be a number >= {least}, found {value!r}")
    return number
