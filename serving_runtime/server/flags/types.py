"""Types of flag values; argparse prints the message of an ArgumentTypeError beside the flag's name."""

import argparse
import re
from typing import Any

from serving_runtime.protocol.restrictions import Restriction, parse_restriction

EVERYWHERE = "::"
"""Every address of IPv6 and of IPv4, as a server serves by Triton's default: see `sockets`."""
UNIX, INHERITED = "unix:", "fd:"
"""Prefixes of endpoint addresses that are not hosts: see `sockets`."""


def boolean(text: str) -> bool:
    if text.lower() in ("true", "1", "on"):
        return True
    if text.lower() in ("false", "0", "off"):
        return False
    raise argparse.ArgumentTypeError(f"'{text}' is neither true nor false")


def count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number >= 0")
    return int(text)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number >= 1")
    return int(text)


def port_number(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port from 0 to 65535")
    return int(text)


def address(text: str) -> str:
    """Return a host name or an IP address; Triton's `ipv6:[::1]`, `[::1]` and `::1` are the same."""
    host = text.removeprefix("ipv6:") if text.startswith("ipv6:") else text.removeprefix("ipv4:")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if ":" not in host:
            raise argparse.ArgumentTypeError(f"'{text}' is not an IPv6 address")
    if not host or "[" in host or "]" in host or (text.startswith("ipv6:") and ":" not in host):
        raise argparse.ArgumentTypeError(f"'{text}' is not an address, such as 127.0.0.1, localhost or [::1]")
    return host


def endpoint(text: str) -> str:
    """Return the listen address of an endpoint: an address, `unix:/path`, or `fd:N`."""
    if text.startswith(UNIX):
        if not text.startswith(f"{UNIX}/") or "\0" in text or text.endswith("/"):
            raise argparse.ArgumentTypeError(f"'{text}' is not unix: with an absolute path, as in unix:/run/http.sock")
        return text
    if text.startswith(INHERITED):
        if not text.removeprefix(INHERITED).isdecimal():
            raise argparse.ArgumentTypeError(f"'{text}' is not fd: with the number of an open socket, as in fd:3")
        return text
    return address(text)


def revision(text: str) -> str:
    """Return a valid header value of a name: one or several DNS labels, like Kubernetes' names."""
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no name: letters, digits, '-', '_' and '.', at most 253")
    return text


def header_pattern(text: str) -> "re.Pattern[str]":
    """Return a pattern of header names, of any case unless it begins with (?-i) (Triton: parameters extension)."""
    flags = re.RegexFlag(0) if text.startswith("(?-i)") else re.IGNORECASE
    try:
        return re.compile(text.removeprefix("(?-i)"), flags)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a regular expression: {error}") from error


def cache_size(text: str) -> int:
    """Return the bytes of a cache, local,size=N; raises for other caches, which Triton finds in shared libraries."""
    name, _, setting = text.partition(",")
    key, _, value = setting.partition("=")
    if name != "local":
        raise argparse.ArgumentTypeError(f"cache '{name}' is not supported; supported is local,size=BYTES")
    if key != "size" or not value.isdecimal() or int(value) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not local,size=BYTES with a size >= 1")
    return int(value)


def resource(text: str) -> tuple[str, int]:
    """Return name and size of a resource, NAME:COUNT; Triton's optional device suffix would be a GPU."""
    name, *rest = text.split(":")
    if not name or not rest or not rest[0].isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME:COUNT")
    if len(rest) > 1:
        raise argparse.ArgumentTypeError(f"'{text}' names a device; models run on the CPU, whose resources have none")
    return name, int(rest[0])


def restriction(text: str) -> Restriction:
    try:
        return parse_restriction(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def add_bool(group: "argparse._ActionsContainer", flag: str, *, default: bool, text: str) -> None:
    """Add a flag that is true when it is given without a value."""
    group.add_argument(
        flag,
        type=boolean,
        nargs="?",
        const=True,
        default=default,
        metavar="BOOL",
        help=f"{text} ({str(default).lower()})",
    )


def add_config_name(group: Any) -> None:
    """Add the flag that selects an alternative configuration of models, as on one kind of MIG slice."""
    group.add_argument(
        "--model-config-name",
        type=_config_name,
        default="",
        metavar="NAME",
        help="reads a model's configs/NAME.pbtxt where it exists, in place of its config.pbtxt",
    )


def _config_name(text: str) -> str:
    if not set(text).isdisjoint("/\\\0") or text.startswith("."):
        raise argparse.ArgumentTypeError(f"'{text}' is not the name of a file without its ending .pbtxt")
    return text
