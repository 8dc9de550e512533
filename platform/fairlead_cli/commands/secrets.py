"""`fairlead secrets`: values for variables of services on the local cluster, which nothing returns."""

import argparse
import getpass
import sys
from pathlib import Path

from fairlead_cli.client import path
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError
from fairlead_cli.output import render

_COLUMNS: render.Columns = {
    "namespace": "namespace",
    "name": "name",
    "keys": "keys",
    "services": "services",
    "changed": "changed_at",
    "by": "changed_by",
}
_MOST_BYTES = 65_536


def secret_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the secret, as service files name it")
    parser.add_argument("--namespace", default="default", help="namespace of the services that use it (default)")


def create_arguments(parser: argparse.ArgumentParser) -> None:
    secret_argument(parser)
    parser.add_argument("--key", metavar="KEY", help="name of the value on standard input; a terminal asks for it")
    parser.add_argument(
        "--from-file",
        dest="files",
        action="append",
        default=[],
        metavar="KEY=FILE",
        help="name of a value and the file that has it, less one line break at its end; may be repeated",
    )


def set_arguments(parser: argparse.ArgumentParser) -> None:
    create_arguments(parser)
    parser.add_argument(
        "--remove", action="append", default=[], metavar="KEY", help="name of a value to remove; may be repeated"
    )


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--namespace", help="namespace (all)")


def create(call: Call) -> None:
    """Creates a secret; its values come from standard input or from files, and nothing returns them."""
    options = call.options
    body = {"namespace": options.namespace, "name": options.name, "values": _values(options)}
    call.show(call.client.post("secrets", body), _COLUMNS)


def change(call: Call) -> None:
    """Sets or removes values of a secret; running replicas keep theirs until `fairlead services restart`."""
    options = call.options
    removed: dict[str, str | None] = dict.fromkeys(options.remove)
    values = {**removed, **(_values(options) if options.key or options.files or not removed else {})}
    call.show(call.client.patch(path("secrets", options.namespace, options.name), {"values": values}), _COLUMNS)


def list_secrets(call: Call) -> None:
    """Lists secrets without their values."""
    namespace = call.options.namespace
    filters = {"namespace": namespace} if namespace else {}
    call.show_list(call.client.all("secrets", filters=filters), _COLUMNS)


def delete(call: Call) -> None:
    """Deletes a secret that no service uses."""
    options = call.options
    call.client.delete(path("secrets", options.namespace, options.name))
    call.done(f"deleted secret {options.namespace}/{options.name}", deleted=f"{options.namespace}/{options.name}")


def _values(options: argparse.Namespace) -> dict[str, str]:
    """Return the values by their keys."""
    values = {}
    for text in options.files:
        key, equals, file = text.partition("=")
        if not key or not equals or not file:
            raise CliError(f"{text!r} names no value and file; expected KEY=FILE")
        values[key] = _of_file(key, Path(file))
    if options.key:
        values[options.key] = _of_input(options.key)
    if not values:
        raise CliError("no value was named; name one with --key, and give it on standard input, or use --from-file")
    return values


def _of_file(key: str, file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return _text(key, opened.read(_MOST_BYTES + 1))
    except OSError as error:
        raise CliError(f"the value of {key} cannot be read from {file}: {error.strerror}") from error


def _of_input(key: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(f"value of {key}: ")
    return _text(key, sys.stdin.buffer.read(_MOST_BYTES + 1))


def _text(key: str, content: bytes) -> str:
    if len(content) > _MOST_BYTES:
        raise CliError(f"the value of {key} has more than {_MOST_BYTES} bytes")
    try:
        return content.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise CliError(
            f"the value of {key} is no text in UTF-8, as variables are; encode it, such as in Base64"
        ) from None
