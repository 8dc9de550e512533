"""`fairlead issuers`: OpenID providers and Kubernetes clusters whose tokens gateways accept. Changes need an admin."""

import argparse
import json
from pathlib import Path

from fairlead_cli.client import path
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError
from fairlead_cli.output import render

_COLUMNS: render.Columns = {
    "name": "name",
    "issuer": "issuer",
    "audience": "audience",
    "keys": "keys",
    "fetched": "fetched_at",
    "failure": "failure",
}


def issuer_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the issuer, as `fairlead issuers list` shows it")


def create_arguments(parser: argparse.ArgumentParser) -> None:
    issuer_argument(parser)
    parser.add_argument("--issuer", required=True, metavar="URL", help="`iss` of its tokens")
    parser.add_argument("--audience", required=True, help="what `aud` of its tokens must have")
    parser.add_argument(
        "--keys", type=Path, metavar="FILE", help="its JSON Web Key Set (fetched from the issuer, every five minutes)"
    )


def create(call: Call) -> None:
    """Creates an issuer, whose tokens gateways accept within seconds."""
    options = call.options
    body = {"name": options.name, "issuer": options.issuer, "audience": options.audience}
    if options.keys is not None:
        body["keys"] = _keys(options.keys)
    call.show(call.client.post("issuers", body), _COLUMNS)


def list_issuers(call: Call) -> None:
    """Lists issuers."""
    call.show_list(call.client.all("issuers"), _COLUMNS)


def show_issuer(call: Call) -> None:
    """Shows one issuer."""
    call.show(call.client.get(path("issuers", call.options.name)), {**_COLUMNS, "created": "created_at"})


def delete(call: Call) -> None:
    """Deletes an issuer: gateways refuse its tokens within seconds."""
    call.client.delete(path("issuers", call.options.name))
    call.done(f"deleted issuer {call.options.name}", deleted=call.options.name)


def _keys(file: Path) -> object:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CliError(f"{file} is no JSON: {error}") from error
