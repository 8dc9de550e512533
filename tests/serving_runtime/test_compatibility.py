"""The compatibility page says what the table says, and every row that claims something has a test that proves it."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.serving_runtime.compatibility import SECTIONS, page

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reference" / "compatibility.md"
ROWS = {row.id: row for rows in SECTIONS.values() for row in rows}


def test_the_page_is_what_the_table_prints() -> None:
    assert PAGE.read_text() == page(), (
        "run: python -m tests.serving_runtime.compatibility > docs/reference/compatibility.md"
    )


def test_every_row_is_plain_about_what_is_missing() -> None:
    assert [row.id for row in ROWS.values() if row.offered not in ("yes", "partly", "no")] == []
    assert [row.id for row in ROWS.values() if row.offered != "yes" and not row.note] == []


def test_every_offered_row_has_a_test_and_every_marked_test_a_row() -> None:
    proved = set(marked_rows())
    assert proved - set(ROWS) == set()
    assert [row.id for row in ROWS.values() if row.offered != "no" and row.id not in proved] == []


def marked_rows() -> Iterator[str]:
    """Yield the row ids of every `pytest.mark.feature(...)` that decorates a test or marks a whole module."""
    for file in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.feature":
                for argument in node.args:
                    yield str(ast.literal_eval(argument))
