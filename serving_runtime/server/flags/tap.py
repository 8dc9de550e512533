"""Flags of the payload tap, which are ours: Triton has none."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from serving_runtime.server.flags.types import positive
from serving_runtime.server.sockets import StartError
from serving_runtime.telemetry.tap import share
from serving_runtime.telemetry.tap.sinks import FileSink, FolderSink, Sink
from serving_runtime.telemetry.tap.tap import Tap


@dataclass(frozen=True, slots=True)
class TapOptions:
    """Payload tap options; off without a url."""

    url: str
    share: float
    share_file: Path | None
    max_pending_bytes: int
    max_file_bytes: int
    token_file: Path | None
    ca_file: Path | None

    @classmethod
    def parsed(cls, found: argparse.Namespace) -> "TapOptions":
        return cls(
            url=found.payload_tap,
            share=found.payload_tap_share,
            share_file=found.payload_tap_share_file,
            max_pending_bytes=found.payload_tap_max_pending_bytes,
            max_file_bytes=found.payload_tap_max_file_bytes,
            token_file=found.payload_tap_token_file,
            ca_file=found.payload_tap_ca_file,
        )


def open_tap(options: TapOptions, source: str) -> Tap:
    """Return the tap; raises StartError when its URL is invalid or its file cannot be written."""
    try:
        sink = open_sink(options)
    except (ValueError, OSError) as error:
        raise StartError(f"--payload-tap: {error}") from error
    recorded = share.Share(options.share, options.share_file)
    return Tap(sink, source=source, share=recorded, max_pending_bytes=options.max_pending_bytes)


def open_sink(options: TapOptions) -> Sink:
    """Return the sink of a `file:`, `http:` or `https:` URL; raises ValueError or OSError with the error."""
    url, max_bytes = options.url, options.max_file_bytes
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.startswith("/"):
        path = Path(unquote(parts.path))
        return FolderSink(path, max_bytes) if parts.path.endswith("/") else FileSink(path, max_bytes)
    if parts.scheme in ("http", "https") and parts.hostname:
        from serving_runtime.telemetry.tap.posting import HttpSink  # noqa: PLC0415 - httpx, as for the logger

        return HttpSink(url, options.token_file, ca_file=options.ca_file)
    raise ValueError(f"'{url}' is not a URL such as file:///var/log/payloads.jsonl or https://collector/events")


def add(group: "argparse._ArgumentGroup") -> None:
    """Add the flags."""
    group.add_argument(
        "--payload-tap",
        default="",
        metavar="URL",
        help="records requests with their answers as CloudEvents: file:///file, file:///folder/ or "
        "http(s)://host (off)",
    )
    group.add_argument(
        "--payload-tap-share",
        type=_share,
        default=1.0,
        metavar="SHARE",
        help="records a request if the hash of its x-request-id, as a fraction, is below this, 0 to 1 (1)",
    )
    group.add_argument(
        "--payload-tap-share-file",
        type=Path,
        metavar="PATH",
        help="reads the share from this file, again after each replacement; 0 while the file is absent",
    )
    group.add_argument(
        "--payload-tap-max-pending-bytes",
        type=positive,
        default=64 * 1024 * 1024,
        metavar="BYTES",
        help="maximum bytes queued for a slow sink; excess events are dropped and counted (67108864)",
    )
    group.add_argument(
        "--payload-tap-max-file-bytes",
        type=positive,
        default=1024 * 1024 * 1024,
        metavar="BYTES",
        help="renames a file to <name>.1 before it exceeds this size; deletes the oldest files of a "
        "folder (1073741824)",
    )
    group.add_argument(
        "--payload-tap-token-file",
        type=Path,
        metavar="PATH",
        help="sends the bearer token in this file to an http(s) URL; reads the file again for each batch",
    )
    group.add_argument(
        "--payload-tap-ca-file",
        type=Path,
        metavar="PATH",
        help="trusts the certificate authorities in this file for an https URL (the usual ones)",
    )


def _share(text: str) -> float:
    try:
        return share.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
