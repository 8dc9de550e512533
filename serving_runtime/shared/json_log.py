"""JSON log lines, one object a line, for collectors of logs: of the runtime, the control plane and the local agent.

    {"time": "2026-01-02T03:04:05.678Z", "level": "INFO", "logger": "fairlead.agent", "message": "...", "task": "..."}

Everything but printable ASCII is escaped: no value of a client ends a line or controls a terminal.
"""

import json
import logging
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

VARIABLE = "FAIRLEAD_LOG_FORMAT"
TEXT, JSON = FORMATS = ("text", "json")

FIELDS = (
    "request_id",
    "trace_id",
    "span_id",
    "task",
    "task_id",
    "service",
    "cluster",
    "model",
    "call",
    "status",
    "took_us",
)
"""Attributes of a record that are fields of its line, in this order, where they have a value."""

logger = logging.getLogger(__name__)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line; an exception with its traceback is the field `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; never raises, whatever was logged."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, Any] = {"time": at, "level": record.levelname, "logger": record.name}
        line["message"] = _message(record)
        for name in FIELDS:
            value = getattr(record, name, None)
            if value not in (None, "", "-"):
                line[name] = value if type(value) in (str, int) else str(value)
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line).replace("\x7f", "\\u007f")


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # arguments that do not fit the text; logging would write a traceback of many lines instead
        return f"{record.msg} {record.args!r}"


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Return whether the operator wants JSON lines of processes that have no settings of their own."""
    return environ.get(VARIABLE, "").strip().lower() == JSON


def log_uncaught() -> None:
    """Log uncaught exceptions and Python's warnings, which are lines of text otherwise."""
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_exception
    threading.excepthook = _log_exception_of_thread


def _log_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        logger.critical("the process ends: %s", kind.__name__, exc_info=(kind, error, trace))


def _log_exception_of_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
        found = (args.exc_type, args.exc_value, args.exc_traceback)
        logger.error("a thread ends: %s", args.exc_type.__name__, exc_info=found)
