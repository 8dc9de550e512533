"""What tests import: no test of another, and nothing that is not there, which would end a whole suite at its start.

What several tests need is in a `_support` package of its room, or in a module of helpers.
"""

import ast
import re
import symtable
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_FROM = re.compile(r"(?:^|[\n;] ?)from ([a-z_][\w.]*) import (\w+(?: as \w+)?(?:, ?\w+(?: as \w+)?)*)")
_EXAMPLES = ("tests/affected/", "tests/test_imports.py")
"""Files whose strings have code about modules that are not there."""


def _imported(file: Path) -> Iterator[str]:
    """Yield the full name of each module, or name of a module, that a file imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{each.name}" for each in node.names)


def _imported_by_code(file: Path) -> Iterator[str]:
    """Yield the same of code in a file's strings, which another process is to run."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module, names in _FROM.findall(node.value):
                yield from (f"{module}.{each.split()[0]}" for each in names.split(","))


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


@cache
def _file_of(module: str) -> Path | None:
    """Return the file of a module, or the folder of a package without one; None where it is not ours."""
    for root in (ROOT / "platform", ROOT):
        place = root.joinpath(*module.split("."))
        for each in (place.with_suffix(".py"), place / "__init__.py", place):
            if each.exists():
                return each
    return None


@cache
def _defined(file: Path) -> frozenset[str]:
    table = symtable.symtable(file.read_text(), str(file), "exec")
    return frozenset(each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported())


def _is_there(name: str) -> bool:
    """Return whether what is imported by this full name exists, as far as it is ours and written down."""
    module, _, last = name.rpartition(".")
    if _file_of(name.partition(".")[0]) is None or _file_of(name) is not None or module.endswith("_pb2"):
        return True
    file = _file_of(module)
    if file is None or file.is_dir():
        return False
    return last == "*" or not {last, "__getattr__"}.isdisjoint(_defined(file))


def test_what_tests_and_benchmarks_import_is_there() -> None:
    files = [file for folder in ("tests", "benchmarks", "examples") for file in (ROOT / folder).rglob("*.py")]
    found = {f"{file.relative_to(ROOT)}: {name}" for file in files for name in _imported(file) if not _is_there(name)}
    assert found == set()


def test_what_code_in_strings_of_tests_imports_is_there() -> None:
    files = [file for folder in ("tests", "benchmarks") for file in (ROOT / folder).rglob("*.py")]
    real = [file for file in files if not file.relative_to(ROOT).as_posix().startswith(_EXAMPLES)]
    imports = {(file, name) for file in real for name in _imported_by_code(file)}
    assert len(imports) > 20
    assert {f"{file.relative_to(ROOT)}: {name}" for file, name in imports if not _is_there(name)} == set()


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("tests.e2e._support.platforms.models", True),
        ("tests.e2e._support.platforms", True),
        ("tests.e2e._support.platforms.nobody", False),
        ("tests.e2e._support.nothing.models", False),
        ("integrations.clusters.local.envoy.bootstrap.CLUSTERS_FILE", False),
        ("httpx.Client", True),
    ],
)
def test_an_import_of_what_is_not_there_would_be_seen(name: str, there: bool) -> None:
    assert _is_there(name) is there
