"""Log settings: levels, file and format; may change while the server runs (Triton: logging extension).

Both protocols show and change them by `LogControl`, so that one place validates them.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.shared import json_log

DEFAULT, ISO8601, JSON = FORMATS = ("default", "ISO8601", json_log.JSON)

_KINDS = {bool: "true or false", int: "a number >= 0", str: "a string"}

_CLIENTS = ("httpx", "httpcore", "urllib3")
"""Loggers of HTTP clients that this process may use."""

_FIELDS = ("log_file", "log_info", "log_warning", "log_error", "log_verbose_level", "log_format")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Names are Triton's.

    Attributes:
        log_file: the log's file; empty for standard error.
        log_verbose_level: above 0 with a line per request (`request_log`).
    """

    log_file: str = ""
    log_info: bool = True
    log_warning: bool = True
    log_error: bool = True
    log_verbose_level: int = 0
    log_format: str = DEFAULT

    def shown(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}

    def keeps(self, level: int) -> bool:
        """Return whether a line of one of logging's levels is written."""
        if level >= logging.ERROR:
            return self.log_error
        if level >= logging.WARNING:
            return self.log_warning
        return self.log_info if level >= logging.INFO else self.log_verbose_level > 0


def changed(settings: LogSettings, changes: Mapping[str, Any]) -> LogSettings:
    """Return the settings with some of them changed; raises InvalidArgument for invalid ones."""
    for name, value in changes.items():
        if name not in _FIELDS:
            raise InvalidArgument(f"there is no log setting '{name}'; there are {', '.join(_FIELDS)}")
        if name == "log_file":
            raise InvalidArgument("log_file is chosen by --log-file; it cannot be changed while the server runs")
        kind = type(getattr(settings, name))
        if type(value) is not kind or (kind is int and value < 0):
            raise InvalidArgument(f"log setting '{name}' must be {_KINDS[kind]}, found {value!r}")
        if name == "log_format" and value not in FORMATS:
            raise InvalidArgument(f"log_format must be {DEFAULT}, {ISO8601} or {JSON}, found '{value}'")
    return replace(settings, **changes)


def quiet_clients() -> None:
    """Silence HTTP clients' line per request: the caller logs failures."""
    for name in _CLIENTS:
        logging.getLogger(name).setLevel(logging.WARNING)


class LogControl:
    """The current settings, applied to logging's root once the log is open.

    Attributes:
        on_change: called after each change.
    """

    def __init__(self, settings: LogSettings) -> None:
        self.settings = settings
        self.on_change: list[Callable[[], None]] = []
        self._handler: logging.Handler | None = None

    def open(self) -> None:
        """Start logging; raises OSError when the file cannot be written."""
        path = self.settings.log_file
        self._handler = logging.FileHandler(path, encoding="utf-8") if path else logging.StreamHandler()
        self._handler.addFilter(lambda record: self.settings.keeps(record.levelno))
        logging.getLogger().addHandler(self._handler)
        quiet_clients()
        self._apply()

    @property
    def verbose(self) -> bool:
        return self.settings.log_verbose_level > 0

    def update(self, changes: Mapping[str, Any]) -> None:
        """Change some settings; raises InvalidArgument, changing nothing, where one of them is invalid."""
        self.settings = changed(self.settings, changes)
        self._apply()
        for notify in self.on_change:
            notify()

    def _apply(self) -> None:
        if self._handler is None:
            return
        logging.getLogger().setLevel(logging.DEBUG if self.verbose else logging.INFO)
        if self.settings.log_format == JSON:
            self._handler.setFormatter(json_log.JsonFormatter())
            return
        iso = self.settings.log_format == ISO8601
        formatter = logging.Formatter(
            "%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ" if iso else None
        )
        formatter.converter = time.gmtime if iso else time.localtime
        self._handler.setFormatter(formatter)
