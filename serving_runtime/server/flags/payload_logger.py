"""Flags of the payload logger, which is compatible with KServe's: it posts all requests and responses to a URL."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from serving_runtime.server.flags.types import positive
from serving_runtime.shared.egress import Network, networks
from serving_runtime.telemetry.tap.share import Share
from serving_runtime.telemetry.tap.tap import RecordedEvents, Tap


@dataclass(frozen=True, slots=True)
class LoggerOptions:
    """Payload logger options; off without a url."""

    url: str
    recorded_events: RecordedEvents
    attributes: Mapping[str, str]
    max_pending_bytes: int
    allowed: tuple[Network, ...] | None = None
    through: Path | None = None

    @classmethod
    def parsed(cls, found: argparse.Namespace) -> "LoggerOptions":
        return cls(
            url=found.payload_logger or "",
            recorded_events=RecordedEvents(found.payload_logger_mode),
            attributes=dict(found.payload_logger_attribute),
            max_pending_bytes=found.payload_logger_max_pending_bytes,
            allowed=found.payload_logger_allowed_networks,
            through=found.payload_logger_socket,
        )


def open_logger(options: LoggerOptions, source: str) -> Tap:
    """Return the tap that records all requests."""
    from serving_runtime.telemetry.tap.delivering import LoggerSink  # noqa: PLC0415 - httpx: a third of a start's imports

    sink = LoggerSink(options.url, options.attributes, options.allowed, through=options.through)
    return Tap(
        sink,
        source=source,
        share=Share(1.0),
        max_pending_bytes=options.max_pending_bytes,
        recorded_events=options.recorded_events,
    )


def add(group: "argparse._ArgumentGroup") -> None:
    """Add the flags."""
    group.add_argument(
        "--payload-logger",
        type=_url,
        metavar="URL",
        help="posts every request and answer to this URL as a CloudEvent, as KServe's payload logger does (off)",
    )
    group.add_argument(
        "--payload-logger-mode",
        choices=[str(recorded_events) for recorded_events in RecordedEvents],
        default=str(RecordedEvents.ALL),
        help="which of them to post (all)",
    )
    group.add_argument(
        "--payload-logger-attribute",
        action="append",
        type=_attribute,
        default=[],
        metavar="NAME=VALUE",
        help="attribute of every posted event, such as namespace=default; may be repeated",
    )
    group.add_argument(
        "--payload-logger-max-pending-bytes",
        type=positive,
        default=64 * 1024 * 1024,
        metavar="BYTES",
        help="maximum bytes queued for a slow receiver; excess events are dropped and counted (67108864)",
    )
    group.add_argument(
        "--payload-logger-allowed-networks",
        type=_networks,
        metavar="NETWORKS",
        help="posts only to public addresses and these networks, such as 10.0.0.0/8,fd00::/8 (anywhere)",
    )
    group.add_argument(
        "--payload-logger-socket",
        type=Path,
        metavar="PATH",
        help="connects to the URL's host through this Unix socket, whose listener resolves and checks it (off)",
    )


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return networks(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; expected networks such as 10.0.0.0/8,fd00::/8") from error


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise argparse.ArgumentTypeError(f"{text!r} is not a URL such as http://message-dumper.default/")
    return text


def _attribute(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    if not given or not re.fullmatch(r"[a-z0-9]{1,20}", name):  # CloudEvents: names of attributes
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE with a name of lower-case letters and digits")
    return name, value
