"""YAML parser for user input: JSON's data types, bounded in depth and number, without references. Pure.

Reading a value takes some 25 us, so that bytes alone bound no time: a list of a million is 2 MB.
"""

import math
from collections.abc import Hashable
from typing import Any

import yaml

MAX_DEPTH = 64
MAX_VALUES = 20_000
_MAX_BITS = 1024
"""Bits of an integer; Python refuses to print one of more than 4300 digits."""

_MAX_NUMBER_CHARACTERS = 1100
"""More than the largest number has in base 2; `1:1:1:…`, in base 60, takes time as the square of its length."""
_PAIRS = ("tag:yaml.org,2002:omap", "tag:yaml.org,2002:pairs")
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class Loader(yaml.SafeLoader):
    """YAML's plain types without dates, duplicate fields and references.

    Raises yaml.MarkedYAMLError for everything refused, and no other error.
    """

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        self._depth = 0
        self._values = 0
        super().__init__(text)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse references, since one line could expand beyond memory; deep nesting; and too many values."""
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "references (*) are not taken here", mark)
        if self._depth > MAX_DEPTH:
            raise yaml.composer.ComposerError(None, None, f"this is nested more than {MAX_DEPTH} deep", mark)
        self._values += 1
        if self._values > MAX_VALUES:
            problem = f"there are more than {MAX_VALUES:,} values; of JSON more are taken"
            raise yaml.composer.ComposerError(None, None, problem, mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Refuse values that do not match their tag, and those that JSON has not."""
        if node.tag in _NUMBERS and len(node.value) > _MAX_NUMBER_CHARACTERS:
            raise yaml.constructor.ConstructorError(None, None, "the number is too large", node.start_mark)
        if node.tag in _PAIRS:
            problem = f"an !!{node.tag.rpartition(':')[2]} is not taken here"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        try:
            found = super().construct_object(node, deep=deep)
        except (ValueError, LookupError, ArithmeticError, AttributeError) as error:
            problem = f"{str(node.value)[:60]!r} is no {node.tag.rpartition(':')[2]}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error
        if problem := _problem(found):
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return found

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Refuse duplicate fields, of which YAML would silently keep the last."""
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"the field {key.value!r} is there twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _problem(found: object) -> str:
    """Return why a value is refused, empty where it is accepted."""
    if not isinstance(found, dict | list | str | int | float | None):
        return f"a {type(found).__name__} is not taken here"
    if isinstance(found, float) and not math.isfinite(found):
        return "a number must be finite"
    return "the number is too large" if isinstance(found, int) and found.bit_length() > _MAX_BITS else ""


def load(text: str) -> Any:
    """Return the parsed text; raises yaml.YAMLError."""
    return yaml.load(text, Loader=Loader)  # noqa: S506 - a SafeLoader
