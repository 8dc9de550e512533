"""Flags of the log."""

import argparse

from serving_runtime.server.flags.types import add_bool, count
from serving_runtime.telemetry.log_settings import FORMATS, LogSettings


def parsed(found: argparse.Namespace) -> LogSettings:
    """Return the settings in a parsed command line."""
    return LogSettings(
        log_file=found.log_file,
        log_info=found.log_info,
        log_warning=found.log_warning,
        log_error=found.log_error,
        log_verbose_level=found.log_verbose,
        log_format=found.log_format,
    )


def add(group: "argparse._ArgumentGroup") -> None:
    """Add the flags."""
    group.add_argument("--log-verbose", type=count, default=0, metavar="LEVEL", help="1 logs one line per request (0)")
    for level in ("info", "warning", "error"):
        add_bool(group, f"--log-{level}", default=True, text=f"logs lines of level {level}")
    group.add_argument(
        "--log-format", choices=FORMATS, default="default", help="format of a line's beginning (default)"
    )
    group.add_argument("--log-file", default="", metavar="PATH", help="file to append the log to (standard error)")
