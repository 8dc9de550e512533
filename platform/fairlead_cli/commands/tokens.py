"""`fairlead tokens`: API tokens with their scopes. Creating one needs a token with scope `admin`."""

import argparse

from fairlead_cli.client import path
from fairlead_cli.context import Call
from fairlead_cli.output import render

_COLUMNS: render.Columns = {
    "id": "id",
    "name": "name",
    "user": "user",
    "scope": "scope",
    "begins": "hint",
    "expires": "expires_at",
    "last used": "last_used_at",
    "revoked": "revoked_at",
}


def create_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", required=True, help="what it is for, such as ci; the audit log names it")
    parser.add_argument(
        "--scope", choices=("read", "write", "admin"), default="read", help="each includes the ones before (read)"
    )
    parser.add_argument("--expires-in", metavar="DURATION", help="such as 720h (the platform's own when left out)")
    parser.add_argument(
        "--user",
        help="whose it is, made if unknown, with the role in team default that the scope needs (you when left out)",
    )


def create(call: Call) -> None:
    """Make a token; it is shown once."""
    options = call.options
    body = {"name": options.name, "scope": options.scope, "expires_in": options.expires_in, "user": options.user}
    token = call.client.post("tokens", {key: value for key, value in body.items() if value is not None})
    call.show(token, {"token": "token", **_COLUMNS})
    call.note("this is the only time that the token is shown; keep it where secrets are kept")


def list_tokens(call: Call) -> None:
    """List the tokens, without their secrets."""
    call.show_list(call.client.all("tokens"), _COLUMNS)


def show_token(call: Call) -> None:
    """Show one token, without its secret."""
    call.show(call.client.get(path("tokens", call.options.id)), {**_COLUMNS, "created": "created_at"})


def token_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", type=int, help="the token's id, as `fairlead tokens list` shows it")


def revoke(call: Call) -> None:
    """End a token, and the browser sessions that signed in with it."""
    call.client.delete(path("tokens", call.options.id))
    call.done(f"revoked token {call.options.id}", revoked=call.options.id)
