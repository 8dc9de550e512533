"""Golden files: of each family one whole base, and of each feature its structural difference from the base.

A folder has `base.out.yaml` and `FEATURE.diff.yaml`. A feature is compared with the base as it is rendered now: where
the base changes, its own test fails, and a feature whose difference is untouched passes. With
FAIRLEAD_UPDATE_GOLDEN=1 the files are written instead.
"""

import difflib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests._support.structural.application import applied
from tests._support.structural.difference import canonical, difference
from tests._support.structural.layout import written

BASE = "base"
_OUTPUT_LINES = 60  # of a failure


def difference_file(folder: Path, feature: str) -> Path:
    """Return the file of a feature's difference."""
    return folder / f"{feature}.diff.yaml"


def plain(rendered: Any) -> Any:
    """Return what is rendered as maps and lists that share no parts."""
    return json.loads(json.dumps(rendered))


def documents(file: Path) -> list[Any]:
    """Return the documents of a golden file."""
    return list(yaml.safe_load_all(file.read_text()))


def wholes(folder: Path) -> Iterator[list[Any]]:
    """Yield the documents of the base, and those that each feature's difference makes of them."""
    base = documents(folder / f"{BASE}.out.yaml")
    yield base
    for file in sorted(folder.glob("*.diff.yaml")):
        (change,) = documents(file)
        yield applied(base, change)


def check_text(file: Path, what: str, text: str) -> None:
    """Compare a file with its text; fail with the lines that differ."""
    if os.environ.get("FAIRLEAD_UPDATE_GOLDEN") == "1":
        file.write_text(text)
    stored = file.read_text() if file.exists() else ""
    if stored != text:
        pytest.fail(f"{what} is not rendered as {file.name} says:\n{lines_that_differ(stored, text)}", pytrace=False)


def check_feature(folder: Path, feature: str, base: Any, tree: Any) -> None:
    """Compare a feature's difference from the base with its file, and base and file with what is rendered."""
    file = difference_file(folder, feature)
    check_text(file, f"feature {feature}", written(difference(base, tree)))
    made = applied(base, documents(file)[0])
    assert canonical(made) == canonical(tree), f"feature {feature}: base and difference are not what is rendered"


def lines_that_differ(stored: str, present: str) -> str:
    """Return a unified diff of two texts; each hunk names the object and the blocks that it begins in."""
    before, after = stored.splitlines(), present.splitlines()
    lines = list(difflib.unified_diff(before, after, "golden", "rendered", lineterm="", n=2))
    shown = []
    for line in lines[:_OUTPUT_LINES]:
        start = int(line.split()[1].partition(",")[0].removeprefix("-")) if line.startswith("@@") else 0
        shown.append(line + "".join(f"  {each.strip()}" for each in _blocks(before, start)))
    if len(lines) > _OUTPUT_LINES:
        shown.append(f"... and {len(lines) - _OUTPUT_LINES} lines more")
    return "\n".join(shown)


def _blocks(lines: list[str], number: int) -> list[str]:
    """Return the lines above line `number` that begin the blocks it is in, the outermost first."""
    found: list[str] = []
    if not 0 < number <= len(lines):
        return found
    depth = _depth(lines[number - 1])
    for line in reversed(lines[: number - 1]):
        if line.strip() and _depth(line) < depth:
            found.insert(0, line)
            depth = _depth(line)
    return _document(lines, number) + found


def _document(lines: list[str], number: int) -> list[str]:
    """Return the lines with kind and name of the object that line `number` is in, where a file has several."""
    start = max((place for place, line in enumerate(lines[:number]) if line == "---"), default=None)
    if start is None:
        return []
    found = (next((line for line in lines[start:] if line.startswith(begin)), "") for begin in ("kind: ", "  name: "))
    return [line.partition(": ")[2] for line in found]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
