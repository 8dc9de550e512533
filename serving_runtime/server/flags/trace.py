"""Flag of the tracer: --trace-config, given once per setting; without a mode, the collector of the environment."""

import argparse
import dataclasses
from collections.abc import Mapping
from typing import Any

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.shared import otlp
from serving_runtime.telemetry.tracing.settings import (
    OPENTELEMETRY,
    TENSORS,
    TIMESTAMPS,
    TRITON,
    TraceOptions,
    TraceSettings,
    changed,
    check_mode,
)

_COMMON = {"rate": "trace_rate", "level": "trace_level", "count": "trace_count"}
_TEXTS = {(TRITON, "file"): "file", (OPENTELEMETRY, "socket"): "through"}
_BATCHING = ("bsp_max_queue_size", "bsp_schedule_delay", "bsp_max_export_batch_size")


def add(group: "argparse._ArgumentGroup") -> None:
    """Add the flag."""
    group.add_argument(
        "--trace-config",
        action="append",
        type=_setting,
        default=[],
        metavar="[MODE,]NAME=VALUE",
        help="mode=triton or opentelemetry, level=TIMESTAMPS, TENSORS or OFF, rate=N, count=N; triton,file=PATH, "
        "triton,log-frequency=N; opentelemetry,url=URL, opentelemetry,socket=PATH, opentelemetry,resource=KEY=VALUE; "
        f"may be given several times. Without a mode, {otlp.VARIABLE}=URL in the environment gives mode=opentelemetry, "
        "level=TIMESTAMPS and that collector",
    )


def parsed(parser: argparse.ArgumentParser, found: argparse.Namespace, environ: Mapping[str, str]) -> TraceOptions:
    """Return the options in a parsed command line and the environment; exits where they are invalid."""
    options = TraceOptions()
    if (endpoint := environ.get(otlp.VARIABLE)) and not any(each[:2] == ("", "mode") for each in found.trace_config):
        try:
            url = otlp.traces_url(endpoint)
        except ValueError as error:
            parser.error(f"{otlp.VARIABLE} {error}")
        options = TraceOptions(OPENTELEMETRY, TraceSettings(levels=(TIMESTAMPS,)), url=url, by_variable=True)
    for mode, name, value in found.trace_config:
        try:
            options = _with(options, mode, name, value)
        except (InvalidArgument, ValueError) as error:
            parser.error(f"--trace-config {mode + ',' if mode else ''}{name}={value}: {error}")
    try:
        check_mode(options, options.settings)
    except InvalidArgument as error:
        parser.error(f"--trace-config: {error}")
    return options


def _with(options: TraceOptions, mode: str, name: str, value: str) -> TraceOptions:
    settings = options.settings
    change: dict[str, Any] | None = None
    if not mode and name == "mode":
        if value not in (TRITON, OPENTELEMETRY):
            raise ValueError(f"the mode is {TRITON} or {OPENTELEMETRY}")
        change = {"mode": value}
    elif not mode and name in _COMMON:
        both = name == "level" and {value, *settings.levels} == {TIMESTAMPS, TENSORS}  # as when it is given twice
        change = {"settings": changed(settings, settings, {_COMMON[name]: [TIMESTAMPS, TENSORS] if both else value})}
    elif mode == TRITON and name == "log-frequency":
        change = {"settings": changed(settings, settings, {"log_frequency": value})}
    elif (mode, name) in _TEXTS:
        change = {_TEXTS[mode, name]: value}
    elif mode == OPENTELEMETRY and name == "url":
        url = value if "://" in value else f"http://{value}"
        if not url.startswith(("http://", "https://")):
            raise ValueError("spans are sent over http or https")
        change = {"url": url}
    elif mode == OPENTELEMETRY and name == "resource":
        key, equals, attribute = value.partition("=")
        if not (key and equals):
            raise ValueError("a resource is KEY=VALUE")
        change = {"resource": {**options.resource, key: attribute}}
    elif mode == OPENTELEMETRY and name in _BATCHING:
        if not value.isdecimal() or int(value) < 1:
            raise ValueError("must be a number >= 1")
        change = {"batching": {**options.batching, name: int(value)}}
    if change is None:
        raise ValueError("there is no such setting; see --help")
    return dataclasses.replace(options, **change)


def _setting(text: str) -> tuple[str, str, str]:
    name, equals, value = text.partition("=")
    mode, comma, rest = name.partition(",")
    if not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE or MODE,NAME=VALUE")
    return (mode, rest, value) if comma else ("", name, value)
