"""The page of published flaws lists what the tests try, and no more."""

import ast
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "published-flaws.md"


def tried() -> dict[str, set[str]]:
    """Return the flaws by the names of the tests that are marked with them."""
    found = {}
    for file in Path(__file__).parent.glob("test_*.py"):
        for node in ast.parse(file.read_text()).body:
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.cve":
                    found[node.name] = {ast.literal_eval(number) for number in mark.args}
    return found


def test_the_page_names_each_flaw_beside_its_tests() -> None:
    listed: dict[str, set[str]] = {}
    for line in PAGE.read_text().splitlines():
        tests = re.findall(r"`(test_\w+)`", line)
        for test in tests:
            listed[test] = set(re.findall(r"CVE-\d+-\d+", line))
    assert listed == tried()
