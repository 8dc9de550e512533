"""The choice: which test files a change can affect, nearest first."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import PurePosixPath

from tests.affected import rules
from tests.affected.changes import Change
from tests.affected.files import TEMPLATES
from tests.affected.graph import FAR, FILE, Graph, is_test
from tests.affected.modules import SETTINGS, Node, module_of
from tests.affected.source import EVERY, Source, changed, read


@dataclass(frozen=True)
class Tree:
    """A work tree: its Python files, the texts of its templates, the paths of all files."""

    sources: Mapping[str, Source]
    templates: Mapping[str, str]
    paths: Sequence[str]

    @cached_property
    def graph(self) -> Graph:
        """Return what leads to what in it."""
        return Graph(self.sources, self.templates, self.paths)

    def with_files(self, paths: Collection[str]) -> "Tree":
        """Return it with further files, without content."""
        nothing = read("")
        sources = {path: nothing for path in paths if path.endswith(".py")}
        return Tree({**self.sources, **sources}, self.templates, [*self.paths, *paths])


@dataclass(frozen=True)
class Chosen:
    """Test files, nearest first: `near` by imports, names and paths, `far` through a process; or why all."""

    near: list[str] = field(default_factory=list)
    far: list[str] = field(default_factory=list)
    everything: str | None = None


def select(changes: Sequence[Change], tree: Tree) -> Chosen:
    """Choose the tests that the changes can affect, from a tree that has them.

    What is gone is still known by those who name it: its files are part of the graph, without content.
    """
    gone = {change.path for change in changes if change.new is None and change.old is not None}
    tree = tree.with_files(gone) if gone else tree
    tests = sorted(path for path in tree.sources if is_test(path) and path not in gone)
    distances: dict[str, int] = {}
    for change in changes:
        if reason := rules.everything(change.path):
            return Chosen(tests, everything=f"{change.path}: {reason}")
        seeds = _seeds(change, tree.sources)
        if not seeds:
            continue
        if unused := _read_by_django(change, seeds, tree.graph):
            return Chosen(tests, everything=f"{change.path}: Django itself reads {unused}")
        found = _reached(change, seeds, tree.graph, tests)
        if not found and not _known(change, tree):
            return Chosen(tests, everything=f"{change.path}: no rule knows what it can affect")
        for path, distance in found.items():
            distances[path] = min(distance, distances.get(path, distance))
    if any(rules.is_source(change.path) for change in changes):
        distances |= {path: distances.get(path, 1) for path in tests if rules.matches(path, rules.READ_ALL_SOURCES)}
    ordered = sorted(distances, key=lambda path: (distances[path], path))
    return Chosen([p for p in ordered if distances[p] < FAR], [p for p in ordered if distances[p] >= FAR])


def _reached(change: Change, seeds: set[Node], graph: Graph, tests: Sequence[str]) -> dict[str, int]:
    """Return the tests of one change with their distance; that of a test which mirrors its path is nothing."""
    there = set(tests)
    found = {path: distance for path, distance in graph.distances(seeds).items() if path in there}
    found |= {path: min(1, found.get(path, 1)) for path in _beside(change.path, tests)}
    nearest = [*_mirrors(change.path, found), *({change.path} & there)]
    return found | dict.fromkeys(nearest, 0)


def _seeds(change: Change, sources: Mapping[str, Source]) -> set[Node]:
    """Return the nodes that a change begins with: of a Python file the definitions that differ."""
    if not change.path.endswith(".py"):
        if change.path == "pyproject.toml" and not rules.of_project(change.old or "", change.new or ""):
            return set()
        return {(change.path, FILE)}
    package = change.path.endswith("/__init__.py")
    try:
        old, new = (read(text or "", module_of(change.path), package=package) for text in (change.old, change.new))
    except SyntaxError:
        return {(change.path, name) for name in (EVERY, *sources[change.path].definitions)}
    return {(change.path, name) for name in changed(old, new)}


def _read_by_django(change: Change, seeds: set[Node], graph: Graph) -> str | None:
    """Return a setting that changed and that none of our code reads: what it changes, the graph cannot say."""
    if change.path != SETTINGS:
        return None
    unused = (
        name for path, name in sorted(seeds) if not graph.users.get((path, name), {}).keys() - {(SETTINGS, EVERY)}
    )
    return next(unused, None)


def _known(change: Change, tree: Tree) -> bool:
    """Say whether it is no surprise that a change reaches no test.

    Helpers may have no user, what is gone is named nowhere, a package may hold no more than its docstring, and of a
    module that tests do reach a line may be unused.
    """
    path = change.path
    if rules.beside(path) is not None:
        return True
    if not path.endswith(".py"):
        return False
    names = tree.sources[path].definitions.keys()
    unused = change.new is None or path.startswith(("tests/", "benchmarks/")) or names <= {"__doc__"}
    return unused or bool(tree.graph.distances((path, name) for name in names))


def _beside(path: str, tests: Iterable[str]) -> list[str]:
    """Return the tests that the tables give to a file; those of its folder have a file of data."""
    patterns = list(rules.beside(path) or ())
    if path.startswith("tests/") and not path.endswith(".py"):
        for folder in PurePosixPath(path).parents:
            if found := [test for test in tests if str(PurePosixPath(test).parent) == str(folder)]:
                return found
    return [test for test in tests if any(fnmatchcase(test, pattern) for pattern in patterns)]


def _mirrors(path: str, tests: Iterable[str]) -> list[str]:
    """Return the tests that a file's path names: of platform/registry/services/imports.py
    tests/registry/services/test_imports.py."""
    pure = PurePosixPath(path.removeprefix("platform/").removeprefix(TEMPLATES))
    mirror = re.compile(rf"tests/{re.escape(str(pure.parent))}/(.*/)?test_{re.escape(pure.stem.strip('_'))}\.py")
    return [test for test in tests if mirror.fullmatch(test)]
