"""Strings that name our modules, templates and tag libraries name some that are there; what others name stays."""

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module

from django.template.engine import Engine
from django.template.loader import get_template

from control_plane.celery import app
from tests.nets._support.modules import modules, rooms, strings, tree
from tests.nets._support.recording import ROOT, check, check_shrinks
from tests.nets.contracts.rooms import LEVELS

TEMPLATES = ROOT / "frontend" / "templates"
FIRST = "|".join(sorted(rooms() | {room for level in LEVELS for room in level}))
"""Names of packages, those that were or will be included: a text that names a module of one that is not there fails."""
DOTTED = re.compile(rf"(?:{FIRST})(?:\.[A-Za-z_]\w*)+(?::[A-Za-z_]\w*)?")
QUOTED = re.compile(rf"[\"'](?:{FIRST})\.")
LOADED = re.compile(r"{%\s*load\s+([\w ]+?)\s*%}")
NAMED = re.compile(r"[\w/-]+\.html")
NO_PATHS = {
    "access.log", "fairlead.agent", "fairlead.by_host", "fairlead.healthy", "fairlead.outcome", "fairlead.queries",
    "fairlead.request_id", "fairlead.revision", "fairlead.service", "fairlead.short_of_memory", "fairlead.sqlite3",
    "fairlead.wake", "fairlead.wake_busy", "usage.size_bytes", "usage.versions",
}  # fmt: skip
"""A logger, Envoy's names, files, fields and attributes of spans, which look like modules."""


def dotted() -> Iterator[tuple[str, str]]:
    """Yield the module and each text in it that is a dotted path into a room, names of tasks left out."""
    app.loader.import_default_modules()
    for name, module in modules().items():
        if "/migrations/" in str(module.file) or not QUOTED.search(module.text):
            continue
        for text in {str(each.value) for each in strings(name)}:
            if DOTTED.fullmatch(text) and text not in NO_PATHS and text not in app.tasks:
                yield name, text


def is_there(path: str) -> bool:
    """Return whether a dotted path leads to a module, or to what is defined in one, or names a model."""
    words = path.replace(":", ".").split(".")
    for count in range(len(words), 0, -1):
        if (name := ".".join(words[:count])) in modules():
            found: object = import_module(name)
            rest = words[count:]
            if len(rest) == 1 and count == 1 and rest[0][:1].isupper():
                return True  # such as "registry.ModelVersion", which Django resolves when it starts
            for word in rest:
                if not hasattr(found, word):
                    return False
                found = getattr(found, word)
            return True
    return False


def of_others() -> Iterator[str]:
    """Yield what other programs and people know by name: console scripts and loggers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    yield from (f"script {name} {target}" for name, target in sorted(project["scripts"].items()))
    yield from sorted({f"logger {name}" for name in _loggers()})


def _loggers() -> Iterator[str]:
    for name, module in modules().items():
        for call in ast.walk(tree(name)) if "getLogger(" in module.text else ():
            first = call.args[0] if isinstance(call, ast.Call) and call.args else None
            if isinstance(first, ast.Constant) and ast.unparse(call).endswith(f"getLogger({ast.unparse(first)})"):
                yield str(first.value)


def of_migrations() -> set[str]:
    """Return the migrations that import code of ours, which can change or move away below them."""
    found = set()
    for name in modules():
        if ".migrations." in name:
            for node in ast.walk(tree(name)):
                origins = [each.name for each in node.names] if isinstance(node, ast.Import) else []
                origins += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                found |= {name for origin in origins if origin.partition(".")[0] in rooms()}
    return found


def test_strings_that_name_modules_name_some_that_are_there() -> None:
    found = set(dotted())
    assert len(found) > 40
    assert sorted(f"{name}: {text}" for name, text in found if not is_there(text)) == []


def test_console_scripts_lead_somewhere() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert [path for path in scripts.values() if not is_there(path)] == []


def test_names_that_others_know_are_as_they_were() -> None:
    check("names_that_others_know.txt", "a name", of_others())


def test_no_more_migrations_import_code() -> None:
    check_shrinks("migrations_with_code.txt", of_migrations(), "write the values into the migration")


def test_templates_that_code_and_templates_name_are_there() -> None:
    named = {
        str(each.value)
        for name, module in modules().items()
        if ".html" in module.text
        for each in strings(name)
        if NAMED.fullmatch(str(each.value))
    }
    pages = {str(file.relative_to(TEMPLATES)): file.read_text() for file in TEMPLATES.rglob("*.html")}
    named |= {
        found for text in pages.values() for found in re.findall(r"{%\s*(?:include|extends)\s+\"([^\"]+)\"", text)
    }
    assert len(named) > 40
    assert sorted(named - pages.keys()) == []
    for name in pages:
        get_template(name)  # parses it, with all that it includes by name


def test_tag_libraries_that_templates_load_are_there() -> None:
    loaded = {
        name
        for file in TEMPLATES.rglob("*.html")
        for names in LOADED.findall(file.read_text())
        for name in names.split()
    }
    assert loaded
    assert loaded <= Engine.get_default().template_libraries.keys()
