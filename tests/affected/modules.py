"""Which definitions a definition of a Python file leads to, by imports and by names alone."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from tests.affected.source import BODY, EVERY, HOLE, Definition, Source

Node = tuple[str, str]
"""A file's path and the name of a definition in it, or `EVERY`."""
SETTINGS = "platform/control_plane/settings.py"
_LOADED = re.compile(r"(fairlead|control_plane)\.(settings|urls)|\w+\.apps\.\w+")
_ROOTS = ("platform/",)


def module_of(path: str) -> str:
    """Return how a file is imported: platform/ and the root of the repository are where imports start."""
    for root in _ROOTS:
        path = path.removeprefix(root)
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Modules:
    """All Python files of a tree, by path, and the resolution of names among them."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self.sources = sources
        self.path_of = {module_of(path): path for path in sources}

    def leads(self, path: str, definition: Definition) -> Iterator[Node]:
        """Yield what a definition of the file uses: by names, by imports inside of it, by dotted names in strings.

        Not followed are the apps and the root of the addresses, which Django loads for every test: routes lead there.
        """
        for name in definition.names:
            yield from self.named(path, name)
        for module, name in definition.imports:
            yield from self.imported(module, name)
        for text in definition.strings:
            if text not in definition.started and not _LOADED.fullmatch(text):  # a process of its own is far
                yield from self._dotted(text)
        if {"import_module", "importlib.import_module"} & definition.names:
            yield from self._loaded(path, definition)

    def named(self, path: str, dotted: str) -> Iterator[Node]:
        """Yield the definitions that `a.b.c`, written in the file, means."""
        source = self.sources[path]
        root, *rest = dotted.split(".")
        if root in source.definitions and not source.definitions[root].imported:
            yield path, root
        for module, name in source.bindings.get(root, ()):
            if (module, name) == ("django.conf", "settings") and rest:
                yield SETTINGS, rest[0]
            elif not name or f"{module}.{name}" in self.path_of:
                yield from self._walked(f"{module}.{name}" if name else module, rest)
            else:
                yield from self.imported(module, name)

    def imported(self, module: str, name: str) -> Iterator[Node]:
        """Yield what `from module import name` means, or `import module` where no name is given."""
        if name and f"{module}.{name}" in self.path_of:
            module, name = f"{module}.{name}", ""
        if module in self.path_of:
            yield self.path_of[module], name or EVERY

    def bodies(self, path: str) -> Iterator[Node]:
        """Yield what runs as well when the file is imported: its packages, and what it imports outside of functions."""
        for parent in PurePosixPath(path).parents:
            if (init := f"{parent}/__init__.py") in self.sources and init != path:
                yield init, BODY
        for definition in self.sources[path].definitions.values():
            if definition.imported:
                for module, name in definition.imports:
                    yield from ((found, BODY) for found, _ in self.imported(module, name))

    def started(self, module: str) -> Iterator[Node]:
        """Yield what `python -m module` runs."""
        for name in (f"{module}.__main__", module):
            if name in self.path_of:
                yield self.path_of[name], EVERY
                return

    def _walked(self, module: str, rest: Iterable[str]) -> Iterator[Node]:
        """Yield the definition that an attribute of a module is, the whole module where it is used as a value."""
        for word in rest:
            if f"{module}.{word}" in self.path_of:
                module = f"{module}.{word}"
            elif module in self.path_of:
                yield self.path_of[module], word
                return
        if module in self.path_of:
            yield self.path_of[module], EVERY

    def _dotted(self, text: str) -> Iterator[Node]:
        """Yield what a string such as "control_plane.asgi:application" or "registry.ModelVersion" (a model) means."""
        words = text.replace(":", ".").split(".")
        if len(words) < 2 or not all(word.isidentifier() for word in words):
            return
        if f"{words[0]}.models" in self.path_of and words[1][:1].isupper():
            yield from self.imported(f"{words[0]}.models", words[1])
        for end in range(len(words), 1, -1):
            if (module := ".".join(words[:end])) in self.path_of:
                yield self.path_of[module], words[end] if end < len(words) else EVERY
                return
        if len(words) == 2:
            yield from self.imported(*words)

    def _loaded(self, path: str, definition: Definition) -> Iterator[Node]:
        """Yield what `import_module(f"{PACKAGE}.{name}")` may load: all modules of the packages that the file names."""
        source = self.sources[path]
        texts = {text for each in source.definitions.values() for text in each.strings} | {module_of(path)}
        packages = {text.partition(HOLE)[0].rstrip(".") for text in texts} & self.path_of.keys()
        for module, found in self.path_of.items():
            if module.rpartition(".")[0] in packages:
                yield found, EVERY
