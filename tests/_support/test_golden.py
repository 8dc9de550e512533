"""Golden files stay small, and one that fails shows the feature and the few lines that differ."""

from pathlib import Path

import pytest

from tests._support import golden

TESTS = Path(__file__).parents[1]
MOST_LINES = 15_500
BASE = {"routes": [{"name": "infer", "weight": 100}, {"name": "ready", "weight": 100}], "timeout": "0s"}
CANARY = {"routes": [{"name": "infer", "weight": 90}, {"name": "ready", "weight": 100}], "timeout": "0s"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the golden file of one feature."""
    monkeypatch.setenv("FAIRLEAD_UPDATE_GOLDEN", "1")
    golden.check_feature(tmp_path, "canary", BASE, CANARY)
    monkeypatch.delenv("FAIRLEAD_UPDATE_GOLDEN")
    return tmp_path


def test_golden_files_have_few_lines() -> None:
    files = [path for folder in TESTS.rglob("golden") if folder.is_dir() for path in folder.iterdir()]
    assert len(files) > 40
    lines = {str(path.relative_to(TESTS)): len(path.read_text().splitlines()) for path in files}
    assert sum(lines.values()) <= MOST_LINES, sorted(lines.items(), key=lambda each: -each[1])[:5]


def test_a_feature_that_is_as_it_was_passes(folder: Path) -> None:
    golden.check_feature(folder, "canary", BASE, CANARY)
    assert golden.difference_file(folder, "canary").read_text() == "routes[infer].weight: {was: 100, is: 90}\n"


def test_a_feature_whose_difference_is_untouched_passes_on_another_base(folder: Path) -> None:
    golden.check_feature(folder, "canary", {**BASE, "timeout": "30s"}, {**CANARY, "timeout": "30s"})


def test_a_failure_names_the_feature_and_shows_the_lines_that_differ(folder: Path) -> None:
    with pytest.raises(pytest.fail.Exception) as failure:
        golden.check_feature(folder, "canary", BASE, {**CANARY, "timeout": "30s"})
    assert str(failure.value).splitlines() == [
        "feature canary is not rendered as canary.diff.yaml says:",
        "--- golden",
        "+++ rendered",
        "@@ -1 +1,2 @@",
        " routes[infer].weight: {was: 100, is: 90}",
        "+timeout: {was: 0s, is: 30s}",
    ]


def test_a_feature_without_a_golden_file_fails(folder: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="feature shadow is not rendered as shadow"):
        golden.check_feature(folder, "shadow", BASE, CANARY)


def test_a_difference_in_a_block_is_shown_with_what_it_is_in() -> None:
    stored = "a:\n  b:\n    c: 1\n    d: 2\n    e: 3\n    f: 4\n"
    shown = golden.lines_that_differ(stored, stored.replace("f: 4", "f: 5")).splitlines()
    assert shown[2:] == ["@@ -4,3 +4,3 @@  a:  b:", "     d: 2", "     e: 3", "-    f: 4", "+    f: 5"]


def test_a_difference_of_several_objects_is_shown_with_its_object() -> None:
    stored = "---\nkind: Pod\nmetadata:\n  name: one\n---\nkind: Pod\nmetadata:\n  name: two\nspec: {}\nport: 1\n"
    shown = golden.lines_that_differ(stored, stored.replace("port: 1", "port: 2")).splitlines()
    assert shown[2] == "@@ -8,3 +8,3 @@  Pod  two  metadata:"


def test_a_long_difference_is_cut() -> None:
    stored = "".join(f"{number}\n" for number in range(200))
    shown = golden.lines_that_differ(stored, "").splitlines()
    assert len(shown) == 61
    assert shown[-1] == "... and 143 lines more"


def test_wholes_are_the_base_and_what_differences_make_of_it(folder: Path) -> None:
    (folder / "base.out.yaml").write_text("name: a\nvalue: 1\n")
    (folder / "canary.diff.yaml").write_text("'[a].value': {was: 1, is: 2}\n")
    assert list(golden.wholes(folder)) == [[{"name": "a", "value": 1}], [{"name": "a", "value": 2}]]
