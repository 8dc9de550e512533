"""Flags of the HTTP endpoint."""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from serving_runtime.protocol.restrictions import Restriction, twice
from serving_runtime.protocol.tls import TlsFiles
from serving_runtime.server.flags.types import (
    EVERYWHERE,
    add_bool,
    endpoint,
    header_pattern,
    port_number,
    positive,
    restriction,
)


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """HTTP options."""

    allow: bool
    address: str
    port: int
    reuse_port: bool
    max_input_bytes: int
    header_forward_pattern: "re.Pattern[str] | None"
    restrictions: tuple[Restriction, ...]
    compiled_json: bool
    tls: TlsFiles | None

    @classmethod
    def parsed(cls, parser: argparse.ArgumentParser, found: argparse.Namespace) -> "HttpOptions":
        """Return the options in a parsed command line; exits where they contradict each other."""
        if group := twice(found.http_restricted_api):
            parser.error(f"--http-restricted-api names '{group}' twice")
        return cls(
            allow=found.allow_http,
            address=found.http_address,
            port=found.http_port,
            reuse_port=found.reuse_http_port,
            max_input_bytes=found.http_max_input_size,
            header_forward_pattern=found.http_header_forward_pattern,
            restrictions=tuple(found.http_restricted_api),
            compiled_json=found.compiled_json,
            tls=_tls(parser, found),
        )


def _tls(parser: argparse.ArgumentParser, found: argparse.Namespace) -> TlsFiles | None:
    files = {"--http-server-cert": found.http_server_cert, "--http-server-key": found.http_server_key}
    for flag, file in files.items():
        if found.http_use_ssl and file is None:
            parser.error(f"TLS on the HTTP port needs {flag}")
        if not found.http_use_ssl and file is not None:
            parser.error(f"{flag} is of no use without --http-use-ssl")
    return TlsFiles("--http", *files.values()) if found.http_use_ssl else None


def add(group: "argparse._ArgumentGroup") -> None:
    """Add the flags."""
    add_bool(group, "--allow-http", default=True, text="listens for HTTP requests")
    group.add_argument(
        "--http-address",
        type=endpoint,
        default=EVERYWHERE,
        metavar="ADDRESS",
        help=f"address of the HTTP endpoint; without a port unix:/path, or fd:N bound already ({EVERYWHERE}, all)",
    )
    group.add_argument(
        "--http-port",
        type=port_number,
        default=8000,
        metavar="PORT",
        help="port of the HTTP endpoint, 0 for a free one (8000)",
    )
    add_bool(group, "--http-use-ssl", default=False, text="enables TLS on the HTTP port")
    for flag, text in (
        ("--http-server-cert", "certificate chain of the server"),
        ("--http-server-key", "private key of --http-server-cert"),
    ):
        group.add_argument(flag, type=Path, metavar="PEM", help=text)
    add_bool(group, "--reuse-http-port", default=False, text="shares the HTTP port with other processes")
    group.add_argument(
        "--http-max-input-size",
        type=positive,
        default=64 * 1024 * 1024,
        metavar="BYTES",
        help="largest request over HTTP or gRPC (67108864)",
    )
    group.add_argument(
        "--http-header-forward-pattern",
        type=header_pattern,
        metavar="REGEX",
        help="HTTP header names to forward as request parameters",
    )
    group.add_argument(
        "--http-restricted-api",
        action="append",
        type=restriction,
        default=[],
        metavar="APIS:HEADER=VALUE",
        help="restricts these groups of HTTP paths to requests with this header; may be repeated",
    )
    add_bool(
        group,
        "--compiled-json",
        default=True,
        text="compiles a reader for large amounts of JSON with FP32 numbers, where numba is installed",
    )
