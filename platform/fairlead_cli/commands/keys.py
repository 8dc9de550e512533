"""`fairlead keys`: keys by which callers of services are known. Creating one needs an admin of its team."""

import argparse

from fairlead_cli.client import path
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError
from fairlead_cli.output import render

_COLUMNS: render.Columns = {
    "name": "name",
    "team": "team",
    "user": "user",
    "services": "services",
    "valid": "valid",
    "requests a second": "requests_per_second",
    "rows a minute": "rows_per_minute",
    "expires": "expires_at",
    "revoked": "revoked_at",
    "last used": "last_used_at",
}
_ONCE = "this is the only time that the key is shown; clients send it as `Authorization: Bearer <key>`"


def key_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the key, as `fairlead keys list` shows it")


def create_arguments(parser: argparse.ArgumentParser) -> None:
    key_argument(parser)
    parser.add_argument(
        "--service",
        dest="services",
        action="append",
        required=True,
        metavar="PATTERN",
        help="service that it may call: NAMESPACE/SERVICE, NAMESPACE/BEGINNING*, NAMESPACE/* or '*'; may be repeated",
    )
    parser.add_argument("--team", help="team that owns the key (default)")
    parser.add_argument("--user", help="person whose key it is (none: a program's)")
    parser.add_argument("--expires-in", metavar="DURATION", help="lifetime of its tokens, such as 720h (2160h)")
    parser.add_argument(
        "--requests-per-second", type=int, metavar="NUMBER", help="limit of its requests to all services (no limit)"
    )
    parser.add_argument(
        "--rows-per-minute", type=int, metavar="NUMBER", help="limit of the rows of these requests (no limit)"
    )


def create(call: Call) -> None:
    """Creates a key for callers of services, and shows it once."""
    options = call.options
    body = {
        "name": options.name,
        "services": options.services,
        "team": options.team,
        "user": options.user,
        "expires_in": options.expires_in,
        "requests_per_second": options.requests_per_second,
        "rows_per_minute": options.rows_per_minute,
    }
    key = call.client.post("keys", {name: value for name, value in body.items() if value is not None})
    call.show(key, {"key": "token", **_COLUMNS})
    call.note(_ONCE)


def list_keys(call: Call) -> None:
    """Lists keys, without their tokens."""
    call.show_list(call.client.all("keys"), _COLUMNS)


def show_key(call: Call) -> None:
    """Shows one key, without its token."""
    call.show(call.client.get(path("keys", call.options.name)), {**_COLUMNS, "created": "created_at"})


def limit_arguments(parser: argparse.ArgumentParser) -> None:
    key_argument(parser)
    parser.add_argument(
        "rate", type=_rate, nargs="?", metavar="NUMBER", help="requests a second to all services; `none` ends it"
    )
    parser.add_argument(
        "--rows-per-minute", type=_rate, metavar="NUMBER", help="rows of these requests; `none` ends the limit"
    )


def limit(call: Call) -> None:
    """Limits the requests of a key a second, or their rows a minute; gateways apply it within seconds."""
    options = call.options
    asked = {"requests_per_second": options.rate, "rows_per_minute": options.rows_per_minute}
    limits = {name: limit or None for name, limit in asked.items() if limit is not None}
    if not limits:
        raise CliError("no limit is given; expected a NUMBER of requests a second, or --rows-per-minute NUMBER")
    call.show(call.client.patch(path("keys", options.name), limits), _COLUMNS)


def _rate(text: str) -> int:
    """Return a limit from the command line, 0 for `none`."""
    if text == "none":
        return 0
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no limit; expected a whole number of at least 1, or none")
    return int(text)


def rotate_arguments(parser: argparse.ArgumentParser) -> None:
    key_argument(parser)
    parser.add_argument(
        "--overlap", metavar="DURATION", help="how long the key of before stays valid, such as 1h; 0 ends it (24h)"
    )


def rotate(call: Call) -> None:
    """Gives a key a new token, and shows it once; the one of before stays valid for the overlap."""
    overlap = call.options.overlap
    body = {} if overlap is None else {"overlap": overlap}
    key = call.client.post(path("keys", call.options.name, "rotate"), body)
    call.show(key, {"key": "token", **_COLUMNS})
    call.note(_ONCE)


def revoke(call: Call) -> None:
    """Revokes a key: gateways refuse it within seconds. Its name stays taken."""
    call.client.delete(path("keys", call.options.name))
    call.done(f"revoked key {call.options.name}", revoked=call.options.name)
