"""How trees and differences are written: YAML in blocks, with small parts on one line."""

from typing import Any

import yaml

WIDTH = 120
_DEPTH = 4  # of maps and lists on one line
_LONGEST_KEY = 500  # YAML has keys of up to 1024 characters on the line of their value


def written(tree: Any) -> str:
    """Return the text of a tree; `yaml.safe_load` reads it."""
    return _written([tree])


def written_all(trees: list[Any]) -> str:
    """Return the text of several documents; `yaml.safe_load_all` reads it."""
    return _written(trees)


class _Layout(yaml.SafeDumper):
    """Writes what occurs twice twice, long keys like short ones, and texts of several lines as blocks."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def check_simple_key(self) -> bool:
        text = self.event.value if isinstance(self.event, yaml.ScalarEvent) else ""
        return (100 <= len(text) < _LONGEST_KEY and text.isprintable()) or super().check_simple_key()


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Layout.add_representer(str, _text)


def _written(trees: list[Any]) -> str:
    nodes = []
    for tree in trees:
        node = _Layout("", sort_keys=False).represent_data(tree)
        _fold(node, 0, 0)
        if not isinstance(node, yaml.ScalarNode):
            node.flow_style = not node.value
        nodes.append(node)
    several = len(nodes) > 1
    return str(yaml.serialize_all(nodes, Dumper=_Layout, width=10_000, explicit_start=several, allow_unicode=True))


def _fold(node: yaml.Node, indent: int, column: int) -> tuple[int, int]:
    """Choose one line or a block for a part and all below it; return its length and depth.

    Args:
        indent: where lines of the part begin if it is a block.
        column: where it begins if it is on one line.
    """
    if isinstance(node, yaml.ScalarNode):
        return (WIDTH + 1 if "\n" in node.value else len(node.value) + 2), 0
    length, depth = 2, 0
    for each in node.value:
        name, value = each if isinstance(node, yaml.MappingNode) else (None, each)
        before = len(name.value) + 2 if name is not None else 2
        long, deep = _fold(value, indent + 2, indent + before)
        length, depth = length + before + long, max(depth, deep)
    node.flow_style = not node.value or (column + length <= WIDTH and depth < _DEPTH)
    return (length if node.flow_style else WIDTH + 1), depth + 1
