"""The modules of the product and what each imports, read from their syntax."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.nets._support.recording import ROOT

PLATFORM = ROOT / "platform"
RUNTIME = "serving_runtime"
BESIDE = (RUNTIME, "releases")
"""Packages at the root of the repository."""


@dataclass(frozen=True)
class Module:
    """A Python file.

    Attributes:
        name: dotted, as it is imported; a package's is that of its folder.
        text: the source.
    """

    name: str
    file: Path
    text: str

    @property
    def is_package(self) -> bool:
        return self.file.name == "__init__.py"

    @property
    def room(self) -> str:
        """Return the first part of the name."""
        return self.name.partition(".")[0]

    @property
    def lines(self) -> int:
        return self.text.count("\n")


@cache
def modules() -> Mapping[str, Module]:
    """Return all modules of `platform/`, of the serving runtime and of releases, by name."""
    found = {}
    for root, folder in ((PLATFORM, PLATFORM), *((ROOT, ROOT / name) for name in BESIDE)):
        for file in sorted(folder.rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = Module(name, file, file.read_text())
    return found


def rooms() -> frozenset[str]:
    """Return the packages of `platform/`, the serving runtime and releases."""
    return frozenset(module.room for module in modules().values())


@cache
def tree(name: str) -> ast.Module:
    """Return a module's syntax."""
    return ast.parse(modules()[name].text)


@cache
def imports(name: str) -> frozenset[str]:
    """Return the full names of the modules that a module imports anywhere, those of others included."""
    return frozenset(_imported(name, ast.walk(tree(name))))


def _imported(name: str, nodes: Iterator[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = ".".join(filter(None, [_parent(name, node.level), node.module]))
            for each in node.names:
                full = f"{origin}.{each.name}"
                yield full if full in modules() else origin


def _parent(name: str, level: int) -> str:
    """Return the package that a relative import starts from; empty for an absolute one."""
    if not level:
        return ""
    parts = name.split(".")
    return ".".join(parts[: len(parts) - level + modules()[name].is_package])


def strings(name: str) -> Iterator[ast.Constant]:
    """Yield the texts in a module, docstrings and the written parts of f-strings included."""
    return (each for each in ast.walk(tree(name)) if isinstance(each, ast.Constant) and isinstance(each.value, str))
