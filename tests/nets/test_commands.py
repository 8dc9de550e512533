"""Command lines stay: commands, arguments, choices and defaults of `fairlead`, `fairlead-serve` and `manage.py`."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import BaseCommand, get_commands, load_command_class

import serving_runtime.__main__ as runtime
from fairlead_cli.__main__ import build_parser
from tests.nets._support.arguments import described
from tests.nets._support.modules import PLATFORM
from tests.nets._support.recording import check


class ParserFoundError(BaseException):
    """Carries a parser out of the program that was about to use it."""


def parser_of(arguments: list[str]) -> argparse.ArgumentParser:
    """Return the parser that `fairlead-serve` reads these arguments with."""
    with pytest.raises(ParserFoundError) as found:
        runtime.main(arguments)
    parser: argparse.ArgumentParser = found.value.args[0]
    return parser


@pytest.fixture
def _parsers_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(parser: argparse.ArgumentParser, *_: object) -> None:
        raise ParserFoundError(parser)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)


def of_manage() -> Iterator[str]:
    """Yield the arguments of our management commands, without those that all of Django's have."""
    common = {action.dest for action in BaseCommand().create_parser("manage.py", "any")._actions}
    ours = {config.name for config in apps.get_app_configs() if PLATFORM in Path(config.path).parents}
    for name, app in sorted(get_commands().items()):
        if app in ours:
            parser = load_command_class(app, name).create_parser("manage.py", name)
            yield from described(parser, f"manage.py {name}", common)


@pytest.mark.usefixtures("_parsers_stop")
def test_fairlead_serve_is_as_it_was() -> None:
    commands: list[list[str]] = [[], *([command] for command in sorted(runtime._COMMANDS))]
    lines = [line for words in commands for line in described(parser_of(words), " ".join(["fairlead-serve", *words]))]
    check("commands_of_the_runtime.txt", "a command line", lines)


def test_fairlead_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_HOME", "/home/of/fairlead")
    check("commands.txt", "a command line", described(build_parser(), "fairlead"))


def test_management_commands_are_as_they_were() -> None:
    check("management_commands.txt", "a command line", of_manage())
