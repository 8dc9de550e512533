"""Form of a file: its main fields, of which the others stay as they are. Pure."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Field:
    """One field.

    Attributes:
        path: its place in the file.
        kind: text, number or choice.
        choices: its values, beside an empty one.
    """

    name: str
    label: str
    path: tuple[str, ...]
    kind: str = "number"
    help: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filled:
    """A field with the file's value; empty where the file has none."""

    field: Field
    value: str


def filled(document: Mapping[str, Any], fields: tuple[Field, ...]) -> list[Filled]:
    """Return the form filled from the file."""
    return [Filled(field, _shown(_at(document, field.path))) for field in fields]


def changed(document: Mapping[str, Any], fields: tuple[Field, ...], values: Mapping[str, str]) -> dict[str, Any]:
    """Return the file with a form's values; an empty field is removed from it, and an invalid number is kept as typed,
    for the error of its field.
    """
    after: dict[str, Any] = copy.deepcopy(dict(document))
    for field in fields:
        if field.name not in values:
            continue
        text = values[field.name].strip()
        if text == _shown(_at(after, field.path)):
            continue
        _put(after, field.path, _meant(text) if field.kind == "number" else text)
    return after


def _at(document: object, path: tuple[str, ...]) -> object:
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document


def _put(document: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    *parents, last = path
    for name in parents:
        if not isinstance(document.get(name), dict):
            if value == "":
                return
            document[name] = {}
        document = document[name]
    if value == "":
        document.pop(last, None)
    else:
        document[last] = value


def _shown(value: object) -> str:
    return "" if value is None else str(value)


def _meant(text: str) -> object:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number
