"""The flags of the gRPC endpoint."""

import argparse
import re
from dataclasses import dataclass

from serving_runtime.protocol.restrictions import Restriction, twice
from serving_runtime.server.flag_types import EVERYWHERE, add_bool, address, header_pattern, port_number, restriction


@dataclass(frozen=True, slots=True)
class GrpcOptions:
    """What the command line says about gRPC."""

    allow: bool
    address: str
    port: int
    header_forward_pattern: "re.Pattern[str] | None"
    restrictions: tuple[Restriction, ...]

    @classmethod
    def parsed(cls, parser: argparse.ArgumentParser, found: argparse.Namespace) -> "GrpcOptions":
        """Return the options in a parsed command line; ends the process where they contradict each other."""
        if group := twice(found.grpc_restricted_protocol):
            parser.error(f"--grpc-restricted-protocol names '{group}' twice")
        return cls(
            allow=found.allow_grpc,
            address=found.grpc_address,
            port=found.grpc_port,
            header_forward_pattern=found.grpc_header_forward_pattern,
            restrictions=tuple(found.grpc_restricted_protocol),
        )


def add(group: "argparse._ArgumentGroup") -> None:
    """Add the flags."""
    add_bool(group, "--allow-grpc", default=True, text="listen for grpc")
    group.add_argument(
        "--grpc-address",
        type=address,
        default=EVERYWHERE,
        metavar="ADDRESS",
        help=f"address of the grpc endpoint ({EVERYWHERE})",
    )
    group.add_argument(
        "--grpc-port",
        type=port_number,
        default=8001,
        metavar="PORT",
        help="port of the grpc endpoint, 0 for a free one (8001)",
    )
    group.add_argument(
        "--grpc-header-forward-pattern",
        type=header_pattern,
        metavar="REGEX",
        help="keys of gRPC metadata that become request parameters",
    )
    group.add_argument(
        "--grpc-restricted-protocol",
        action="append",
        type=restriction,
        default=[],
        metavar="PROTOCOLS:KEY=VALUE",
        help="let only calls with the metadata triton-grpc-protocol-KEY into these groups; may be given several times",
    )
