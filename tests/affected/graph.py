"""The graph from tests to what they reach, and how far from a change each test is."""

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from tests.affected import rules
from tests.affected.files import TEMPLATES, Files, template_leads
from tests.affected.modules import SETTINGS, Modules, Node
from tests.affected.routes import Routes
from tests.affected.source import BODY, EVERY, ROUTE, Definition, Source

FAR = 1000
"""What an edge costs that crosses into a process of its own; other edges cost one or nothing."""
FILE = "file"
"""The name of the node that is a file which is not Python, or a whole test file."""


class Graph:
    """What leads to what: edges are kept backwards, from what is used to its users."""

    def __init__(self, sources: Mapping[str, Source], texts: Mapping[str, str], paths: Iterable[str]) -> None:
        """Join all Python files, the templates' texts, and the paths of all files."""
        self.users: dict[Node, dict[Node, int]] = {}
        self.modules = Modules(sources)
        self.files = Files(paths)
        self.routes = Routes(self.modules)
        self._conftests = {str(PurePosixPath(p).parent): p for p in sources if PurePosixPath(p).name == "conftest.py"}
        self._libraries = {PurePosixPath(p).stem: p for p in sources if "/templatetags/" in p}
        self._commands = {PurePosixPath(p).stem: p for p in sources if "/management/commands/" in p}
        for path, source in sources.items():
            self._python(path, source)
        for path, text in texts.items():
            self._template(path, text)
        for route in self.routes.all:
            for name in rules.OF_EVERY_ROUTE:
                self._edge(route, (SETTINGS, name), 1)

    def distances(self, changed: Iterable[Node]) -> dict[str, int]:
        """Return the test files that use a changed node, with the length of the shortest way to one."""
        best: dict[Node, int] = {}
        queue = [(0, node) for node in changed]
        heapq.heapify(queue)
        while queue:
            distance, node = heapq.heappop(queue)
            if best.get(node, distance + 1) <= distance:
                continue
            best[node] = distance
            for user, cost in self.users.get(node, {}).items():
                if user not in best:
                    heapq.heappush(queue, (distance + cost, user))
        return {path: distance for (path, name), distance in best.items() if name == FILE and is_test(path)}

    def _edge(self, user: Node, used: Node, cost: int) -> None:
        if user != used:
            users = self.users.setdefault(used, {})
            users[user] = min(cost, users.get(user, cost))

    def _python(self, path: str, source: Source) -> None:
        for name, definition in source.definitions.items():
            node = (path, name)
            if not definition.imported:
                self._edge((path, EVERY), node, 0)
            if name != BODY and not name.startswith(ROUTE):
                self._edge(node, (path, BODY), 0)
            for used in self.modules.leads(path, definition):
                self._edge(node, used, 0 if used[0] == path else 1)
            for used, cost in self._without_imports(path, definition):
                self._edge(node, used, cost)
            for module in definition.started:
                for used in self.modules.started(module):
                    self._edge(node, used, FAR)
            for owner, names in definition.registers:
                self._registered(path, owner, names)
        for used in self.modules.bodies(path):
            self._edge((path, BODY), used, 1)
        if is_test(path):
            cost = FAR if rules.whole_platform(path) else 0
            self._edge((path, FILE), (path, EVERY), cost)
            for used in self._of_folders(path):
                self._edge((path, FILE), used, 1)

    def _without_imports(self, path: str, definition: Definition) -> Iterator[tuple[Node, int]]:
        if "/migrations/" not in path:
            for file in self.files.named(path, definition):
                yield (file, FILE), 1
        called = any(name.endswith("call_command") for name in definition.names)
        for text in definition.strings & self._commands.keys():
            if called or "_" in text:
                yield (self._commands[text], EVERY), 1 if called else FAR
        if is_test(path) or PurePosixPath(path).name == "conftest.py":
            for fixture in self._fixtures(path, definition):
                yield fixture, 1
        if path.startswith("tests/"):
            for route in self.routes.reached(path, definition):
                yield route, 1
        for name in rules.BY_NAME.keys() & definition.names:
            for file in rules.BY_NAME[name]:
                yield (file, EVERY), 1

    def _registered(self, path: str, owner: str, names: set[str]) -> None:
        """Lead from a module with `register(f)` to what was registered: it will call it."""
        for module, _ in list(self.modules.named(path, owner)):
            source = self.modules.sources.get(module)
            for name in names:
                for used in self.modules.named(path, name):
                    for user in source.definitions if source else ():
                        if user != BODY:
                            self._edge((module, user), used, 1)

    def _fixtures(self, path: str, definition: Definition) -> Iterator[Node]:
        """Yield the fixtures that a definition names, each of the nearest conftest.py that has it."""
        wanted = set(definition.fixtures)
        if any(name.rpartition(".")[2] in ("usefixtures", "getfixturevalue") for name in definition.names):
            wanted |= definition.strings
        for file in (path, *self._conftests_of(path)):
            there = self.modules.sources[file].definitions
            found = wanted & there.keys()
            yield from ((file, name) for name in found)
            wanted -= found

    def _conftests_of(self, path: str) -> Iterator[str]:
        for folder in PurePosixPath(path).parents:
            if (conftest := self._conftests.get(str(folder))) and conftest != path:
                yield conftest

    def _of_folders(self, path: str) -> Iterator[Node]:
        """Yield what applies to a test file unasked: of each conftest.py its body, hooks and fixtures for all."""
        for conftest in self._conftests_of(path):
            for name, definition in self.modules.sources[conftest].definitions.items():
                if name == BODY or name.startswith("pytest_") or definition.autouse:
                    yield conftest, name

    def _template(self, path: str, text: str) -> None:
        for used, words in template_leads(path, text):
            if used.startswith(TEMPLATES):
                self._edge((path, FILE), (used, FILE), 1)
            elif library := self._libraries.get(used):
                for name in self.modules.sources[library].definitions:
                    if name in words or name == BODY:
                        self._edge((path, FILE), (library, name), 1)


def is_test(path: str) -> bool:
    """Say whether pytest collects the file."""
    return path.startswith("tests/") and re.fullmatch(r"test_\w+\.py", PurePosixPath(path).name) is not None
