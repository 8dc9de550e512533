"""File of the programs: what the proxy starts, as JSON. It is removed once read, since it may hold secrets.

    {"predictor": {"command": ["python", "serve.py"], "folder": "/srv/programs/digits-1", "env": {"PATH": "/usr/bin"}},
     "transformer": {...}, "explainer": {...}}

A predictor that is the platform's own runtime has `"runtime": true`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from serving_runtime.common.errors import InvalidArgument

PREDICTOR, TRANSFORMER, EXPLAINER = NAMES = ("predictor", "transformer", "explainer")

_MAX_BYTES = 4 * 1024 * 1024
_FIELDS = frozenset({"command", "folder", "env", "runtime"})


class BadPrograms(InvalidArgument):
    """The file cannot be read, or what it says cannot be run."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program.

    Attributes:
        command: words, of which the first is the program's file.
        folder: its working directory, an absolute path.
        env: its variables; none are inherited.
        is_runtime: it is the platform's own runtime.
    """

    command: tuple[str, ...]
    folder: str
    env: Mapping[str, str] = field(repr=False)
    is_runtime: bool = False


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one replica."""

    predictor: Program
    transformer: Program | None = None
    explainer: Program | None = None


def read(file: Path) -> Programs:
    """Return the programs, and remove the file; raises BadPrograms."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_MAX_BYTES + 1)
        file.unlink()
    except OSError as error:
        raise BadPrograms(f"{file} cannot be read and removed: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise BadPrograms(f"{file} is larger than {_MAX_BYTES} bytes")
    try:
        return parsed(orjson.loads(content))
    except orjson.JSONDecodeError as error:
        raise BadPrograms(f"{file} is not JSON: {error}") from None
    except BadPrograms as error:
        raise BadPrograms(f"{file}: {error}") from None


def parsed(content: Any) -> Programs:
    """Return the programs of a parsed file; raises BadPrograms. No message has a value of a variable."""
    named = _object(content, "the file")
    if unknown := sorted(named.keys() - set(NAMES)):
        raise BadPrograms(f"'{unknown[0]}' is no program; there are {', '.join(NAMES)}")
    if PREDICTOR not in named:
        raise BadPrograms("'predictor' is missing; transformer and explainer need one")
    found = {name: _program(name, each) for name, each in named.items()}
    for name in (TRANSFORMER, EXPLAINER):
        if name in found and found[name].is_runtime:
            raise BadPrograms(f"{name}.runtime is true, and only a predictor is a runtime; leave it out")
    return Programs(found[PREDICTOR], found.get(TRANSFORMER), found.get(EXPLAINER))


def _program(name: str, content: Any) -> Program:
    fields = _object(content, name)
    if unknown := sorted(fields.keys() - _FIELDS):
        raise BadPrograms(f"{name}.{unknown[0]} is no field; there are {', '.join(sorted(_FIELDS))}")
    command, folder = fields.get("command"), fields.get("folder", "")
    if not isinstance(command, list) or not command or not all(map(_is_text, command)) or not command[0]:
        raise BadPrograms(f"{name}.command must be a list of words, of which the first is the program")
    if not isinstance(folder, str) or not _is_text(folder) or not folder.startswith("/"):
        raise BadPrograms(f"{name}.folder must be an absolute path")
    env = _object(fields.get("env", {}), f"{name}.env")
    for variable, value in env.items():
        if not variable or "=" in variable or "\0" in variable or not _is_text(value):
            raise BadPrograms(f"{name}.env: '{variable}' must be a variable's name with a text as its value")
    is_runtime = fields.get("runtime", False)
    if not isinstance(is_runtime, bool):
        raise BadPrograms(f"{name}.runtime must be true or false")
    return Program(tuple(command), folder, env, is_runtime)


def _object(content: Any, what: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise BadPrograms(f"{what} must be a JSON object, not {type(content).__name__}")
    return content


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value
