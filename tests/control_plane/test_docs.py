"""The documentation's tables say what the code says."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_settings_table_names_exactly_the_variables_that_are_read() -> None:
    read = set(re.findall(r'env\.\w+\(\s*"(FAIRLEAD_\w+)"', (ROOT / "platform/control_plane/settings.py").read_text()))
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


def test_every_file_that_the_documentation_names_is_there() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    folders = "platform|serving_runtime|frontend|tests|docs|benchmarks|requirements"
    named = {
        (page.relative_to(ROOT), path)
        for page in pages
        for path in re.findall(rf"`((?:{folders})/[\w./-]+)`", page.read_text())
    }
    assert len(named) > 30
    assert sorted((str(page), path) for page, path in named if not (ROOT / path).exists()) == []


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [
        (page, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", page.read_text())
        if "://" not in link
    ]
    assert len(links) > 30
    assert [f"{page}: {link}" for page, link in links if not (page.parent / link).exists()] == []


def test_every_how_to_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    assert [path.name for path in (ROOT / "docs" / "how-to").glob("*.md") if f"how-to/{path.name}" not in index] == []
