"""`fairlead login` and `fairlead whoami`: stored credentials."""

import argparse
import getpass
import os
import sys

from fairlead_cli import config
from fairlead_cli.client import Client
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError


def login_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--token", help="API token (from a prompt, or from standard input)")


def login(call: Call) -> None:
    """Verifies a token with the control plane and stores it for later commands."""
    url = config.resolve(call.options.url).url
    token = call.options.token or os.environ.get("FAIRLEAD_TOKEN") or _ask(url)
    access = config.Access(url, token)
    with Client(access) as client:
        who = client.get("whoami")
    kept_in = config.credentials_path(os.environ)
    config.keep_token(kept_in, access)
    call.done(f"signed in at {url}; the token is kept in {kept_in}", url=url, whoami=who)


def whoami(call: Call) -> None:
    """Shows the user of the token in use."""
    who = call.client.get("whoami")
    call.show(who, {key.replace("_", " "): key for key in who})


def _ask(url: str) -> str:
    token = getpass.getpass(f"API token for {url}: ") if sys.stdin.isatty() else sys.stdin.readline()
    if not token.strip():
        raise CliError("no token given; make one on the control plane and pass it with --token or on standard input")
    return token.strip()
