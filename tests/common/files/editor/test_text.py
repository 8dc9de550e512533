"""Service files as YAML, and how two of them differ."""

import pytest

from common.errors import InvalidInput
from common.files.editor.text import LONGEST, Change, Line, document_of, lines_between, text_of

DOCUMENT = {"kind": "InferenceService", "metadata": {"name": "digits"}, "spec": {"on": "2026-01-01", "yes": True}}


def test_a_file_comes_back_as_it_was() -> None:
    assert document_of(text_of(DOCUMENT)) == DOCUMENT
    assert text_of(DOCUMENT).startswith("kind: InferenceService\nmetadata:\n  name: digits\n")


def test_dates_stay_texts_as_in_json() -> None:
    assert document_of("at: 2026-01-01") == {"at": "2026-01-01"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("a: 1\nb: [", "line 2", id="no YAML"),
        pytest.param("a: 1\na: 2", "line 2: the field 'a' is there twice", id="a field twice"),
        pytest.param("a: &x [1]\nb: *x", r"line 2: references \(\*\) are not taken here", id="a reference"),
        pytest.param("- a", "the text is no service file", id="a list"),
        pytest.param("", "the text is no service file", id="nothing"),
        pytest.param("a: !!python/object:os.system 1", "line 1", id="a tag of a program"),
        pytest.param("a: " + "x" * LONGEST, "65,536 at most", id="too long"),
        pytest.param("a: \0", "this is no YAML", id="what no text has"),
    ],
)
def test_what_is_no_file_is_refused_with_its_line(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        document_of(text)


def test_a_difference_has_some_lines_around_it() -> None:
    before = "".join(f"line {number}\n" for number in range(9))
    assert lines_between(before, before.replace("line 4", "line four"), around=1) == [
        Line(Change.SKIPPED, "…"),
        Line(Change.SAME, "line 3"),
        Line(Change.GONE, "line 4"),
        Line(Change.NEW, "line four"),
        Line(Change.SAME, "line 5"),
    ]


def test_the_same_has_no_difference() -> None:
    assert lines_between("a\n", "a\n") == []


def test_lines_that_look_like_marks_are_lines() -> None:
    assert lines_between("-- a\n", "++ b\n") == [
        Line(Change.SKIPPED, "…"),
        Line(Change.GONE, "-- a"),
        Line(Change.NEW, "++ b"),
    ]
