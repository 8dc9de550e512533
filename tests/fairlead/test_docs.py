"""The documentation's tables say what the code says."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_settings_table_names_exactly_the_variables_that_are_read() -> None:
    read = set(re.findall(r'env\.\w+\(\s*"(FAIRLEAD_\w+)"', (ROOT / "platform/fairlead/settings.py").read_text()))
    rows = (
        line
        for line in (ROOT / "docs/reference/settings.md").read_text().splitlines()
        if line.startswith("| `FAIRLEAD_")
    )
    documented = {row.split("`")[1] for row in rows}
    assert documented == read


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = set(re.findall(r"\((\d{4}-[\w-]+\.md)\)", (folder / "README.md").read_text()))
    assert listed == {path.name for path in folder.glob("[0-9]*.md")}
