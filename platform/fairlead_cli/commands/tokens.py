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
    parser.add_argument("--name", required=True, help="name of the token, such as ci; the audit log shows it")
    parser.add_argument(
        "--scope",
        choices=("read", "write", "admin"),
        default="read",
        help="scope of the token; each includes the ones before (read)",
    )
    parser.add_argument("--expires-in", metavar="DURATION", help="lifetime, such as 720h (the platform's default)")
    parser.add_argument(
        "--user",
        help="owner, created if unknown, with the role in team default that the scope requires (you)",
    )


def create(call: Call) -> None:
    """Creates an API token, and shows it once."""
    options = call.options
    body = {"name": options.name, "scope": options.scope, "expires_in": options.expires_in, "user": options.user}
    token = call.client.post("tokens", {key: value for key, value in body.items() if value is not None})
    call.show(token, {"token": "token", **_COLUMNS})
    call.note("this is the only time that the token is shown; keep it where secrets are kept")


def list_tokens(call: Call) -> None:
    """Lists the API tokens, without their secrets."""
    call.show_list(call.client.all("tokens"), _COLUMNS)


def show_token(call: Call) -> None:
    """Shows one API token, without its secret."""
    call.show(call.client.get(path("tokens", call.options.id)), {**_COLUMNS, "created": "created_at"})


def token_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", type=int, help="id of the token, as `fairlead tokens list` shows it")


def revoke(call: Call) -> None:
    """Revokes an API token, and the browser sessions that signed in with it."""
    call.client.delete(path("tokens", call.options.id))
    call.done(f"revoked token {call.options.id}", revoked=call.options.id)
