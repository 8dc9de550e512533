"""Flags of the gRPC endpoint."""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from serving_runtime.protocol.grpc.settings import COMPRESSION_LEVELS, GrpcSettings
from serving_runtime.protocol.restrictions import Restriction, twice
from serving_runtime.protocol.tls import TlsFiles
from serving_runtime.server.flags.types import (
    EVERYWHERE,
    add_bool,
    count,
    endpoint,
    header_pattern,
    port_number,
    positive,
    restriction,
)

_DEFAULTS = GrpcSettings()

GRPCIO, H2 = "grpcio", "h2"
"""Values of `--grpc-server`: one of earlier releases, which has no effect, and the server's own HTTP/2."""


@dataclass(frozen=True, slots=True)
class GrpcOptions:
    """gRPC options."""

    allow: bool
    server: str
    address: str
    port: int
    header_forward_pattern: "re.Pattern[str] | None"
    restrictions: tuple[Restriction, ...]
    settings: GrpcSettings

    @classmethod
    def parsed(cls, parser: argparse.ArgumentParser, found: argparse.Namespace) -> "GrpcOptions":
        """Return the options in a parsed command line; exits where they contradict each other."""
        settings = GrpcSettings(
            max_message_bytes=found.http_max_input_size,
            reuse_port=found.reuse_grpc_port,
            tls=_tls(parser, found),
            compression_level=found.grpc_infer_response_compression_level,
            keepalive_time_ms=found.grpc_keepalive_time,
            keepalive_timeout_ms=found.grpc_keepalive_timeout,
            keepalive_permit_without_calls=found.grpc_keepalive_permit_without_calls,
            max_pings_without_data=found.grpc_http2_max_pings_without_data,
            min_recv_ping_interval_ms=found.grpc_http2_min_recv_ping_interval_without_data,
            max_ping_strikes=found.grpc_http2_max_ping_strikes,
            max_connection_age_ms=found.grpc_max_connection_age,
            max_connection_age_grace_ms=found.grpc_max_connection_age_grace,
        )
        if group := twice(found.grpc_restricted_protocol):
            parser.error(f"--grpc-restricted-protocol names '{group}' twice")
        return cls(
            allow=found.allow_grpc,
            server=found.grpc_server,
            address=found.grpc_address,
            port=found.grpc_port,
            header_forward_pattern=found.grpc_header_forward_pattern,
            restrictions=tuple(found.grpc_restricted_protocol),
            settings=settings,
        )


def _tls(parser: argparse.ArgumentParser, found: argparse.Namespace) -> TlsFiles | None:
    files = {
        "--grpc-server-cert": found.grpc_server_cert,
        "--grpc-server-key": found.grpc_server_key,
        "--grpc-root-cert": found.grpc_root_cert,
    }
    if not (found.grpc_use_ssl or found.grpc_use_ssl_mutual):
        for flag, file in files.items():
            if file is not None:
                parser.error(f"{flag} is of no use without --grpc-use-ssl")
        return None
    optional = () if found.grpc_use_ssl_mutual else ("--grpc-root-cert",)
    for flag, file in files.items():
        if file is None and flag not in optional:
            parser.error(f"TLS on the gRPC port needs {flag}")
    mutual = found.grpc_use_ssl_mutual
    return TlsFiles("--grpc", found.grpc_server_cert, found.grpc_server_key, found.grpc_root_cert, mutual)


def add(group: "argparse._ArgumentGroup") -> None:
    """Add the flags."""
    add_bool(group, "--allow-grpc", default=True, text="listens for gRPC requests")
    group.add_argument(
        "--grpc-server",
        choices=(GRPCIO, H2),
        default=H2,
        help="no effect: h2, the server's own HTTP/2, serves gRPC; grpcio is accepted with a warning",
    )
    group.add_argument(
        "--grpc-address",
        type=endpoint,
        default=EVERYWHERE,
        metavar="ADDRESS",
        help=f"address of the gRPC endpoint, also unix:/path or fd:N ({EVERYWHERE}, all)",
    )
    group.add_argument(
        "--grpc-port",
        type=port_number,
        default=8001,
        metavar="PORT",
        help="port of the gRPC endpoint, 0 for a free one (8001)",
    )
    add_bool(group, "--reuse-grpc-port", default=False, text="shares the gRPC port with other processes")
    _add_tls(group)
    group.add_argument(
        "--grpc-infer-response-compression-level",
        choices=COMPRESSION_LEVELS,
        default="none",
        help="compresses answers for clients that accept it (none)",
    )
    _add_connection(group)
    group.add_argument(
        "--grpc-header-forward-pattern",
        type=header_pattern,
        metavar="REGEX",
        help="gRPC metadata keys to forward as request parameters",
    )
    group.add_argument(
        "--grpc-restricted-protocol",
        action="append",
        type=restriction,
        default=[],
        metavar="PROTOCOLS:KEY=VALUE",
        help="restricts these groups to calls with the metadata triton-grpc-protocol-KEY; may be repeated",
    )


def _add_tls(group: "argparse._ArgumentGroup") -> None:
    add_bool(group, "--grpc-use-ssl", default=False, text="enables TLS on the gRPC port")
    add_bool(
        group, "--grpc-use-ssl-mutual", default=False, text="enables mutual TLS: clients must present a certificate"
    )
    for flag, text in (
        ("--grpc-server-cert", "certificate chain of the server"),
        ("--grpc-server-key", "private key of --grpc-server-cert"),
        ("--grpc-root-cert", "CA certificates that sign clients' certificates"),
    ):
        group.add_argument(flag, type=Path, metavar="PEM", help=text)


def _add_connection(group: "argparse._ArgumentGroup") -> None:
    for flag, kind, default, text in (
        (
            "--grpc-keepalive-time",
            positive,
            _DEFAULTS.keepalive_time_ms,
            "pings a silent client after so many ms (7200000)",
        ),
        (
            "--grpc-keepalive-timeout",
            positive,
            _DEFAULTS.keepalive_timeout_ms,
            "ends a connection after so many ms without an answer to a ping (20000)",
        ),
        (
            "--grpc-http2-max-pings-without-data",
            count,
            2,
            "maximum consecutive pings without data, 0 for any number (2)",
        ),
        (
            "--grpc-http2-min-recv-ping-interval-without-data",
            count,
            _DEFAULTS.min_recv_ping_interval_ms,
            "minimum ms between a client's pings without data; a sooner ping is a strike (300000)",
        ),
        ("--grpc-http2-max-ping-strikes", count, 2, "strikes after which a connection ends, 0 for none (2)"),
        ("--grpc-max-connection-age", positive, None, "requests clients to reconnect after so many ms (never)"),
        ("--grpc-max-connection-age-grace", positive, None, "ends an old connection so many ms later (never)"),
    ):
        group.add_argument(flag, type=kind, default=default, metavar="N", help=text)
    add_bool(
        group, "--grpc-keepalive-permit-without-calls", default=False, text="pings clients that have no call in flight"
    )
