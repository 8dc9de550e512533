"""No test imports another: what several need is in a `_support` package of its room, or in a module of helpers."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def _imported(file: Path) -> Iterator[str]:
    """Yield the full name of each module, or name of a module, that a file imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{each.name}" for each in node.names)


def _is_of_tests_alone(name: str) -> bool:
    """Return whether an import leads into a test module or a conftest."""
    parts = name.split(".")
    return parts[0] == "tests" and any(part == "conftest" or part.startswith("test_") for part in parts[1:])


def test_nothing_imports_a_test_or_a_conftest() -> None:
    files = [file for folder in ("tests", "benchmarks", "examples") for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 600
    found = {
        f"{file.relative_to(ROOT)}: {name}" for file in files for name in _imported(file) if _is_of_tests_alone(name)
    }
    assert found == set(), "move what is shared into tests/<room>/_support/"


def test_an_import_of_a_test_would_be_seen(tmp_path: Path) -> None:
    file = tmp_path / "other.py"
    file.write_text("from tests.registry.test_api import upload\nfrom tests.e2e import conftest\nimport pytest\n")
    assert [name for name in _imported(file) if _is_of_tests_alone(name)] == [
        "tests.registry.test_api.upload",
        "tests.e2e.conftest",
    ]
