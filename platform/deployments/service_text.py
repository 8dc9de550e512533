"""A service file as YAML that people read and edit, and how two of them differ. Pure."""

import difflib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml

from common.errors import InvalidInput

LONGEST = 64 * 1024


class Change(StrEnum):
    """What became of a line."""

    SAME = "same"
    GONE = "gone"
    NEW = "new"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a difference; one that was skipped stands for several."""

    change: Change
    text: str


class _Loader(yaml.SafeLoader):
    """YAML's plain kinds without dates, without a field that is there twice, and without references."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse what refers to another part: a line of it can say more than memory holds."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "references (*) are not taken here", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Refuse a field that is there twice, of which YAML would keep the second without a word."""
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"the field {key.value!r} is there twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def text_of(document: object) -> str:
    """Return a file as YAML, its fields in their order."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


def document_of(text: str) -> Mapping[str, Any]:
    """Return the file that a text says; raises InvalidInput, which names the line."""
    if len(text) > LONGEST:
        raise InvalidInput(f"the file has {len(text):,} characters; {LONGEST:,} at most", field="text")
    try:
        found = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f"line {error.problem_mark.line + 1}: "
        raise InvalidInput(f"{line}{error.problem or error.context}; this is no YAML", field="text") from error
    except yaml.YAMLError as error:
        raise InvalidInput(f"this is no YAML: {error}", field="text") from error
    if not isinstance(found, dict):
        raise InvalidInput("the text is no service file; it begins with `apiVersion: `", field="text")
    return found


def lines_between(before: str, after: str, around: int = 3) -> list[Line]:
    """Return what differs with some lines around it; empty where nothing does."""
    lines: list[Line] = []
    for line in list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=around))[2:]:
        if line.startswith("@@"):
            lines.append(Line(Change.SKIPPED, "…"))
        else:
            lines.append(Line({"+": Change.NEW, "-": Change.GONE}.get(line[0], Change.SAME), line[1:]))
    return lines
