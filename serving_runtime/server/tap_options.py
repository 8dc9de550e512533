"""The flags of the payload tap, which are ours: Triton has none."""

import argparse
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from serving_runtime.server.flag_types import positive
from serving_runtime.server.sockets import StartError
from serving_runtime.telemetry.tap import share
from serving_runtime.telemetry.tap.sinks import open_sink
from serving_runtime.telemetry.tap.tap import Tap


@dataclass(frozen=True, slots=True)
class TapOptions:
    """What the command line says about the payload tap; no url, no tap."""

    url: str
    share: float
    share_file: Path | None
    max_pending_bytes: int
    max_file_bytes: int

    @classmethod
    def parsed(cls, found: argparse.Namespace) -> "TapOptions":
        return cls(
            url=found.payload_tap,
            share=found.payload_tap_share,
            share_file=found.payload_tap_share_file,
            max_pending_bytes=found.payload_tap_max_pending_bytes,
            max_file_bytes=found.payload_tap_max_file_bytes,
        )


def open_tap(options: TapOptions, server_id: str) -> Tap:
    """Return the tap; raises StartError when its URL is none or its file cannot be written."""
    try:
        sink = open_sink(options.url, options.max_file_bytes)
    except (ValueError, OSError) as error:
        raise StartError(f"--payload-tap: {error}") from error
    source = f"/{server_id}/{socket.gethostname()}/{os.getpid()}"
    recorded = share.Share(options.share, options.share_file)
    return Tap(sink, source=source, share=recorded, max_pending_bytes=options.max_pending_bytes)


def add(group: "argparse._ArgumentGroup") -> None:
    """Add the flags."""
    group.add_argument(
        "--payload-tap",
        default="",
        metavar="URL",
        help="record requests with their answers as CloudEvents: file:///file, file:///folder/ or http(s)://host (off)",
    )
    group.add_argument(
        "--payload-tap-share",
        type=_share,
        default=1.0,
        metavar="SHARE",
        help="record a request if the hash of its x-request-id, as a fraction, is below this, 0 to 1 (1)",
    )
    group.add_argument(
        "--payload-tap-share-file",
        type=Path,
        metavar="PATH",
        help="read the share from this file, again whenever it was replaced; while there is none it is 0",
    )
    group.add_argument(
        "--payload-tap-max-pending-bytes",
        type=positive,
        default=64 * 1024 * 1024,
        metavar="BYTES",
        help="what may wait for a slow sink; more is dropped and counted (67108864)",
    )
    group.add_argument(
        "--payload-tap-max-file-bytes",
        type=positive,
        default=1024 * 1024 * 1024,
        metavar="BYTES",
        help="a file that would grow beyond this is renamed to <name>.1 first; of a folder the oldest go (1073741824)",
    )


def _share(text: str) -> float:
    try:
        return share.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
