"""`fairlead users`: accounts, and their deactivation."""

import argparse

from fairlead_cli.client import path
from fairlead_cli.context import Call
from fairlead_cli.output import render

_COLUMNS: render.Columns = {
    "user": "name",
    "let in": "active",
    "roles": "roles",
    "signs in at": "provider",
    "last seen": "last_seen_at",
    "made": "created_at",
}


def user_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER", help="name of the user")


def switch_arguments(parser: argparse.ArgumentParser) -> None:
    user_argument(parser)
    parser.add_argument("--reason", required=True, metavar="TEXT", help="reason, for the audit log")


def list_users(call: Call) -> None:
    """Lists the users; for administrators of the installation."""
    call.show_list(call.client.all("users"), _COLUMNS)


def show_user(call: Call) -> None:
    """Shows a user, with its teams and when it was last seen."""
    call.show(call.client.get(path("users", call.options.user)), _COLUMNS)


def switch_off(call: Call) -> None:
    """Deactivates a user: its sessions and tokens are refused; its roles remain."""
    _switch(call, active=False)


def switch_on(call: Call) -> None:
    """Activates a deactivated user."""
    _switch(call, active=True)


def invite(call: Call) -> None:
    """Creates a link that links a user to the account of the provider that opens it, and shows it once."""
    invitation = call.client.post(path("users", call.options.user, "invitation"), {})
    call.show(invitation, {"user": "user", "link": "url", "expires": "expires_at"})
    call.note("this is the only time that the link is shown; it works once")


def free(call: Call) -> None:
    """Unlinks a user from its account at the provider, and ends its sessions and tokens."""
    user = call.options.user
    call.client.delete(path("users", user, "identity"))
    call.done(f"{user} is unlinked from its account at the provider", freed=user)


def _switch(call: Call, *, active: bool) -> None:
    options = call.options
    call.show(call.client.patch(path("users", options.user), {"active": active, "reason": options.reason}), _COLUMNS)
