"""Validation of config.pbtxt overrides without a model: names, types, support."""

import re
from dataclasses import dataclass
from typing import Any

from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.config.support import unsupported_fields
from serving_runtime.config.text import sentence_of

_TOKEN = re.compile(r"""(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<field>\w+)\s*(?P<mark>[:{])|(?P<close>})""")
_FIELD = re.compile(r"(\w+)\s*[:{]")
_QUOTED_LINE = re.compile(r"^\d+:\d+ : ('.*': )?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mistake:
    """Why a model with these fields would not load: the dotted name of the field at fault, and one sentence."""

    field: str
    error: str


def mistake_in(text: str) -> Mistake | None:
    """Return the first error in `text`, fields of a ModelConfig in protobuf text format; None if valid.

    What depends on the model itself (its tensors, its files, a complete schedule) is found when it is loaded.
    """
    config: Any = proto.ModelConfig()
    try:
        text_format.Parse(text, config)
    except text_format.ParseError as error:
        field = _field_at(text, error.GetLine() or 1, error.GetColumn() or 1)
        what = _QUOTED_LINE.sub("", sentence_of(error))
        return Mistake(field, what[:1].lower() + what[1:])
    field, *further = unsupported_fields(config) or ("",)
    if not field:
        return None
    return Mistake(field, ", nor does it support ".join(["this runtime does not support it", *further]))


def _field_at(text: str, line: int, column: int) -> str:
    """Return the dotted name of the field at a line and column (both from 1): its own, or of the value there."""
    lines = text.splitlines()
    before, after = lines[line - 1][: column - 1], lines[line - 1][column - 1 :]
    open_fields: list[str] = []
    current = ""
    for token in _TOKEN.finditer(before):
        if token["mark"] == "{":
            open_fields.append(token["field"])
            current = ""
        elif token["close"]:
            open_fields = open_fields[:-1]
            current = ""
        elif token["mark"]:
            current = token["field"]
    named = _FIELD.match(after)
    last = named[1] if named else current
    return ".".join([*open_fields, last] if last else open_fields)
