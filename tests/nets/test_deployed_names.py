"""What images, chart, overlays and documentation name of the code stays: modules, commands, environment variables."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.nets._support.modules import PLATFORM, modules, rooms
from tests.nets._support.recording import ROOT, check

AREAS = {
    "images": ("docker/*", "manage.py"),
    "chart": ("charts/**/*",),
    "overlays": ("kustomize/**/*",),
    "documentation": ("README.md", "SECURITY.md", "docs/**/*.md", "examples/**/*"),
    "code": ("platform/**/*.py", "serving_runtime/**/*.py"),
}
WITH_VARIABLES = {"images", "chart", "overlays"}
"""`test_settings` has the variables of the code."""
_QUOTED = r"[\"',\s-]+"
PATTERNS = {
    "python -m": re.compile(rf"(?<=-m){_QUOTED}((?:[a-z_]+)(?:\.[a-z_]+)*)"),
    "celery --app": re.compile(rf"(?:-A{_QUOTED}|--app=)([a-z_.]+)"),
    "command": re.compile(rf"(?:manage\.py|-m{_QUOTED}django){_QUOTED}([a-z]+_?[a-z_]+)"),
    "module": re.compile(rf"(?<![\w./-])((?:{'|'.join(sorted(rooms()))})(?:\.[a-z_]+)+(?::[A-Za-z_]+)?)(?![\w./-])"),
}
VARIABLES = re.compile(r"\b(?:FAIRLEAD_[A-Z0-9_]+[A-Z0-9]|DJANGO_SETTINGS_MODULE|PYTHONPATH)\b")


def files(area: str) -> Iterator[Path]:
    """Yield the text files of an area."""
    for pattern in AREAS[area]:
        for file in sorted(ROOT.glob(pattern)):
            if file.is_file() and "\0" not in file.read_text(errors="replace")[:1000]:
                yield file


def named(area: str) -> set[str]:
    """Return the lines of an area: what is named, and how."""
    found = set()
    for file in files(area):
        text = file.read_text(errors="replace")
        for how, pattern in PATTERNS.items():
            if how == "module" and area == "code":
                continue  # imports have them, and `test_python_paths` the strings
            found |= {f"{area}: {how} {name}" for name in pattern.findall(text) if how != "module" or _is_module(name)}
        if area in WITH_VARIABLES:
            found |= {f"{area}: variable {name}" for name in VARIABLES.findall(text)}
    return found


def _is_module(name: str) -> bool:
    """Return whether a dotted word is a module of ours, or in one: `fairlead.example.com` is none."""
    path = name.partition(":")[0]
    is_one = path in modules() or path.rpartition(".")[0] in modules().keys() - rooms()
    return is_one and name != "fairlead.env"  # a file of variables


def test_names_are_as_they_were() -> None:
    check("deployed_names.txt", "a name", sorted(line for area in AREAS for line in named(area)))


def test_modules_that_are_started_are_there() -> None:
    started = {line.rpartition(" ")[2] for area in AREAS for line in named(area) if ": python -m " in line}
    ours = {name for name in started if name.partition(".")[0] in rooms() | {"tests", "benchmarks"}}
    assert len(ours) > 10
    assert sorted(name for name in ours if not _can_be_started(name)) == []


def _can_be_started(name: str) -> bool:
    places = [root.joinpath(*name.split(".")) for root in (PLATFORM, ROOT)]
    return any(place.with_suffix(".py").is_file() or (place / "__main__.py").is_file() for place in places)
