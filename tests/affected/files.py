"""Which files that are not Python a program names: by path, by file name, by a folder, templates by their name."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from tests.affected.source import HOLE, Definition

TEMPLATES = "frontend/templates/"
TESTS = "tests"
"""The folder that a program names to read test modules: what else is in it, it does not use."""
_TAG = re.compile(r"\{%-?\s*(extends|include|load)\s+([^%]*)%\}")
_WORD = re.compile(r"\w+")


class Files:
    """The tree's files, found by what a program calls them."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = {path for path in paths if not path.endswith(".py")}
        self._by_name: dict[str, set[str]] = {}
        self._below: dict[str, set[str]] = {}
        for path in self.paths:
            pure = PurePosixPath(path)
            self._by_name.setdefault(pure.name, set()).add(path)
            for folder in pure.parents:
                if str(folder) != TESTS:
                    self._below.setdefault(str(folder), set()).add(path)
        self._endings = tuple({PurePosixPath(path).suffix for path in self.paths} - {""})

    def named(self, origin: str, definition: Definition) -> set[str]:
        """Return the files that a definition of the Python file `origin` names, tests' with all files of folders."""
        found = set()
        folders = not origin.startswith(("platform/", "serving_runtime/"))
        for text in definition.strings:
            if len(text) < 200 and not any(c.isspace() for c in text):
                found |= self._file(text) or (self._folder(origin, text) if folders and "/" in text else set())
        for text in definition.paths:
            found |= self._file(text) or (self._folder(origin, text) if folders else set())
        return found

    def _file(self, text: str) -> set[str]:
        text = text.strip("/")
        if text in self.paths:
            return {text}
        if HOLE in text:
            if not text.endswith(self._endings):
                return set()
            pattern = "*/" + text.replace(HOLE, "*")
            name = PurePosixPath(text).name.replace(HOLE, "*")
            return (
                {
                    p
                    for n, paths in self._by_name.items()
                    if fnmatchcase(n, name)
                    for p in paths
                    if fnmatchcase(p, pattern)
                }
                if name.strip("*.") not in {e[1:] for e in self._endings}
                else set()
            )
        return {path for path in self._by_name.get(PurePosixPath(text).name, ()) if path.endswith(f"/{text}")}

    def _folder(self, origin: str, text: str) -> set[str]:
        """Return all files below a folder that is named from the root, or from the folder of the file that names it."""
        text = text.strip("/")
        for start in (PurePosixPath(origin).parent, *PurePosixPath(origin).parents):
            if (found := self._below.get(str(start / text))) is not None and text:
                return found
        return set()


def template_leads(path: str, text: str) -> Iterator[tuple[str, set[str]]]:
    """Yield what a template uses: a template's path and nothing, a tag library's name and the template's words."""
    words = set(_WORD.findall(text))
    for tag, rest in _TAG.findall(text):
        if tag == "load":
            yield from ((library, words) for library in rest.split())
        else:
            for name in re.findall(r"""["']([^"']+)["']""", rest):
                yield TEMPLATES + name, set()
