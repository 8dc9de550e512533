"""Command context: a call's options, the control plane it connects to, and the output of its answer."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from fairlead_cli.client import Client
from fairlead_cli.config import resolve
from fairlead_cli.errors import CliError
from fairlead_cli.output import render


@dataclass
class Call:
    """The argument of a command's function; a context manager, which closes the connection."""

    options: argparse.Namespace

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "client" in self.__dict__:
            self.client.close()

    @cached_property
    def client(self) -> Client:
        """The API client; connected on first use."""
        return Client(resolve(getattr(self.options, "url", None)))

    @property
    def as_json(self) -> bool:
        """Whether the output is JSON, for programs."""
        return bool(self.options.output == "json")

    def show_list(self, rows: Sequence[Mapping[str, Any]], columns: render.Columns) -> None:
        """Print a list."""
        print(render.as_json(list(rows)) if self.as_json else render.table(rows, columns))

    def show(self, row: Mapping[str, Any], columns: render.Columns) -> None:
        """Print one object."""
        print(render.as_json(dict(row)) if self.as_json else render.facts(row, columns))

    def done(self, sentence: str, **facts: object) -> None:
        """Print the result of an action."""
        print(render.as_json(facts) if self.as_json else sentence)

    def note(self, sentence: str) -> None:
        """Print a message for the terminal that is not part of the answer."""
        print(render.clean(sentence), file=sys.stderr, flush=True)


def count(text: str) -> int:
    """Parse the number of list entries; for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of entries; expected 1 or more")
    return int(text)


def service_path(text: str) -> tuple[str, str]:
    """Return NAMESPACE/NAME or NAME (in the namespace `default`) as its two parts."""
    namespace, slash, name = text.partition("/")
    parts = (namespace, name) if slash else ("default", text)
    if not all(parts) or "/" in parts[1]:
        raise CliError(f"{text!r} is no service; expected NAME or NAMESPACE/NAME")
    return parts
