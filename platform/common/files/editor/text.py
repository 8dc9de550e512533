"""A file as YAML text, with its lines' differences and a digest. Pure."""

import difflib
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml

from common.errors import InvalidInput
from common.files.yaml_text import Loader, load
from common.http import parsers

LONGEST = 64 * 1024


class Change(StrEnum):
    """The change of a line."""

    SAME = "same"
    GONE = "gone"
    NEW = "new"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a diff; a skipped one represents several."""

    change: Change
    text: str


def text_of(document: object) -> str:
    """Return a file as YAML, its fields in their order."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


class UnreadableText(InvalidInput):
    """A text that is no YAML; `line` is the line at fault, from 1."""

    def __init__(self, message: str, *, line: int | None) -> None:
        super().__init__(message, field="text")
        self.line = line


def document_of(text: str, *, what: str = "service file", begins: str = "apiVersion") -> Mapping[str, Any]:
    """Return the file of a text; raises InvalidInput, which names the line.

    Args:
        what, begins: the kind of the file, and its first field, for the error message.
    """
    if len(text) > LONGEST:
        raise InvalidInput(f"the file has {len(text):,} characters; {LONGEST:,} at most", field="text")
    try:
        found = load(text)
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        where = "" if line is None else f"line {line}: "
        raise UnreadableText(f"{where}{error.problem or error.context}; this is no YAML", line=line) from error
    except yaml.YAMLError as error:
        raise InvalidInput(f"this is no YAML: {error}", field="text") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"the text is no {what}; it begins with `{begins}: `", field="text")
    parsers.check(found)
    return found


def line_of(text: str, field: str) -> int | None:
    """Return the line, from 1, of a field such as `steps[0].hold`, or of its nearest existing parent.

    None without any, and for a text that is no YAML.
    """
    try:
        node = yaml.compose(text, Loader=Loader)
    except yaml.YAMLError:
        return None
    line = None
    for part in re.findall(r"[^.\[\]]+", field):
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and part.isdecimal() and int(part) < len(node.value):
            found = (node.value[int(part)],) * 2
        else:
            found = None
        if found is None:
            return line
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def lines_between(before: str, after: str, around: int = 3) -> list[Line]:
    """Return the differing lines with some around them; empty for equal texts."""
    lines: list[Line] = []
    for line in list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=around))[2:]:
        if line.startswith("@@"):
            lines.append(Line(Change.SKIPPED, "…"))
        else:
            lines.append(Line({"+": Change.NEW, "-": Change.GONE}.get(line[0], Change.SAME), line[1:]))
    return lines


def digest_of(text: str) -> str:
    """Return a digest of a text, to detect that a form was filled from another; line ends do not count."""
    return hashlib.sha256("\n".join(text.split("\r\n")).strip().encode()).hexdigest()
