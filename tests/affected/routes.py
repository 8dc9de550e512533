"""Which views a test asks over HTTP: by the words of the paths in its strings."""

import re
from collections.abc import Iterator

from tests.affected import rules
from tests.affected.modules import Modules, Node
from tests.affected.source import HOLE, ROUTE, Definition

URLCONF = "platform/control_plane/urls.py"
_COMMON = {"api", "v1"}
_METHODS = {"get", "post", "goto"}
_PARAMETER = re.compile(r"<[^>]*>")


class Routes:
    """The entries of all `urlpatterns` that the root's include, with the literal words of their paths."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self.all: dict[Node, frozenset[str]] = {}
        self._words: dict[str, set[str]] = {}
        if URLCONF in modules.sources:
            self._collect(URLCONF, "")

    def _collect(self, path: str, prefix: str) -> None:
        for name, definition in self._modules.sources[path].definitions.items():
            if not name.startswith(ROUTE):
                continue
            address = prefix + name.removeprefix(ROUTE)
            included = [self._modules.path_of.get(text, "") for text in definition.strings if text.endswith(".urls")]
            for each in filter(None, included):
                self._collect(each, address)
            if not included:
                self.all[path, name] = _words_of(_PARAMETER.sub("", address))

    def reached(self, path: str, definition: Definition) -> Iterator[Node]:
        """Yield the entries that a definition of a test may ask: it has one of their words, its file has the others."""
        if path.startswith(rules.NEVER_ASK):
            return
        own = {word for text in definition.strings | definition.paths for word in _asked(text)}
        if "conftest" in path or not {name.rpartition(".")[2] for name in definition.names} & _METHODS:
            own.discard("")
        if not own:
            return
        if path not in self._words:
            every = self._modules.sources[path].definitions.values()
            self._words[path] = {word for d in every for text in d.strings | d.paths for word in _asked(text)}
        for route, words in self.all.items():
            asked = words <= self._words[path] and (words - _COMMON) & own if words else "" in own
            if asked:
                yield route


def _asked(text: str) -> set[str]:
    """Return the words of a path in a string; of "/" alone an empty one."""
    if not text.startswith(("/", HOLE)) or any(c.isspace() for c in text):
        return set()
    path = re.split("[?#]", text, maxsplit=1)[0]
    return {""} if path == "/" else set(_words_of(path))


def _words_of(path: str) -> frozenset[str]:
    return frozenset(word for part in path.split("/") for word in part.split(HOLE) if word)
