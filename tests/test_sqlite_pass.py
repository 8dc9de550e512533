"""The list of tests for the second pass names what there is, and all that cannot do without it."""

import ast
from pathlib import Path

import pytest

from tests.sqlite_pass import ALSO_ON_SQLITE, TESTS, is_of_second_pass

ROOMS = ("accounts", "common", "deployments", "fairlead", "registry")
OF_ONE_SERVER = {
    "accounts/services/test_audit_protection.py": "roles of PostgreSQL",
    "deployments/reconcile/test_database_gone.py": "stops a PostgreSQL of its own",
}


def _functions(file: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(file.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _commits(test: ast.AST) -> bool:
    """Return whether a test or fixture commits its transactions, by its arguments and decorators."""
    names = {node.arg for node in ast.walk(test) if isinstance(node, ast.arg)}
    marks = {node.arg for node in ast.walk(test) if isinstance(node, ast.keyword)}
    return "transactional_db" in names or "transaction" in marks


def test_the_list_names_tests_that_are_there() -> None:
    for entry in ALSO_ON_SQLITE:
        path, _, name = entry.partition("::")
        assert (TESTS / path).is_file(), entry
        assert not name or name in {function.name for function in _functions(TESTS / path)}, entry


def test_modules_whose_tests_commit_are_in_the_list() -> None:
    """Only where a test commits do several connections see each other, and databases differ most in that."""
    found = {
        str(file.relative_to(TESTS))
        for room in ROOMS
        for file in (TESTS / room).rglob("test_*.py")
        if any(_commits(function) for function in _functions(file))
    }
    listed = {entry.partition("::")[0] for entry in ALSO_ON_SQLITE}
    assert found > {"deployments/reconcile/test_races.py", *OF_ONE_SERVER}
    assert sorted(found - listed - set(OF_ONE_SERVER)) == []


def test_tests_of_the_list_have_the_mark(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        marked = item.get_closest_marker("sqlite") is not None
        assert marked == is_of_second_pass(item.nodeid), item.nodeid
    assert is_of_second_pass("tests/common/http/test_filters.py::test_a_list_is_narrowed[x-y]")
    assert not is_of_second_pass("tests/control_plane/test_openapi.py::test_other")
