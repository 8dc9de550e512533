"""`fairlead models describe`, `tag` and `compatible`: metadata of a model or a version, set after it was made."""

import argparse
from pathlib import Path

from fairlead_cli.client import Json, path
from fairlead_cli.commands.version_metadata import pair
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError
from fairlead_cli.output import render


def _target_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the registered model")
    parser.add_argument(
        "--version", type=int, metavar="NUMBER", help="number of a version to change, instead of the model"
    )


def describe_arguments(parser: argparse.ArgumentParser) -> None:
    _target_arguments(parser)
    parser.add_argument("text", nargs="?", metavar="MARKDOWN", help="description; an empty one removes it")
    parser.add_argument("-f", "--file", type=Path, help="file that contains the description, such as README.md")


def describe(call: Call) -> None:
    """Sets the description of a model or of one of its versions."""
    options = call.options
    if (options.text is None) == (options.file is None):
        raise CliError("give the description itself, or the file it is in with -f, and not both")
    text = options.text
    if options.file is not None:
        try:
            text = options.file.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise CliError(f"{options.file} cannot be read as text: {error}") from error
    _change(call, {"description": text}, "description")


def tag_arguments(parser: argparse.ArgumentParser) -> None:
    _target_arguments(parser)
    parser.add_argument("tags", nargs="*", metavar="KEY=VALUE", help="tags to set")
    parser.add_argument("--remove", action="append", default=[], metavar="KEY", help="tag to remove")


def tag(call: Call) -> None:
    """Sets and removes tags of a model or of one of its versions."""
    options = call.options
    pairs = [pair(text).partition("=") for text in options.tags]
    changes: dict[str, str | None] = {key: value for key, _, value in pairs}
    changes |= dict.fromkeys(options.remove)
    if not changes:
        raise CliError("nothing to change; give KEY=VALUE or --remove KEY")
    _change(call, {"tags": changes}, "tags")


def compatible_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the registered model")
    parser.add_argument("reference", metavar="VERSION", help="@ALIAS or version number; none disables the check")


def compatible(call: Call) -> None:
    """Rejects future versions of a model that break clients of this version."""
    options = call.options
    options.version = None
    _change(call, {"compatible_with": "" if options.reference == "none" else options.reference}, "compatible_with")


def _change(call: Call, document: Json, shown: str) -> None:
    options = call.options
    versioned = options.version is not None
    address = path("models", options.name, "versions", options.version) if versioned else path("models", options.name)
    changed = call.client.patch(address, document)
    what = f"{options.name} version {options.version}" if versioned else f"model {options.name}"
    sentence = f"{shown.replace('_', ' ')} of {what}: {_text(changed[shown])}"
    call.done(render.clean(sentence), **changed)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={text}" for key, text in value.items()) or "none"
    return str(value) or "none"
