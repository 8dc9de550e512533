"""Columns, facts and numbers for people; nothing raw from outside."""

from datetime import datetime

import pytest

from fairlead_cli.output import render


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(None, "-", id="nothing is a dash"),
        pytest.param("", "-", id="an empty text is a dash"),
        pytest.param([], "-", id="an empty list is a dash"),
        pytest.param(0, "0", id="zero is a number, not nothing"),
        pytest.param(True, "yes", id="truth in words"),
        pytest.param(["a", None], "a, -", id="a list in one line"),
        pytest.param({"vision": "admin", "a": "viewer"}, "vision=admin, a=viewer", id="an object as pairs"),
        pytest.param("2026-01-31T12:00:00.123456Z", "2026-01-31T12:00:00Z", id="a moment without microseconds"),
        pytest.param("at 2026-01-31T12:00:00.1Z", "at 2026-01-31T12:00:00.1Z", id="a sentence as it is"),
        pytest.param("one\ntwo\tthree", "one two three", id="one line"),
        pytest.param("\x1b[2Jgone\u202e", "?[2Jgone?", id="nothing that steers a terminal"),
    ],
)
def test_clean(value: object, text: str) -> None:
    assert render.clean(value) == text


def test_table_is_as_wide_as_its_cells() -> None:
    rows = [{"name": "digits", "rollout": {"phase": "Healthy"}}, {"name": "a", "rollout": None}]

    text = render.table(rows, {"name": "name", "phase": "rollout.phase", "upper": lambda row: row["name"].upper()})

    assert text.splitlines() == ["NAME    PHASE    UPPER", "digits  Healthy  DIGITS", "a       -        A"]


def test_table_without_rows_shows_its_headings() -> None:
    assert render.table([], {"name": "name"}) == "NAME"


def test_facts_line_up() -> None:
    assert render.facts({"a": 1, "long": "x"}, {"a": "a", "longer": "long"}) == "a       1\nlonger  x"


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "-"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 2**30, "5.0 GiB"), (3 * 2**40, "3.0 TiB")],
)
def test_size(count: int | None, text: str) -> None:
    assert render.size(count) == text


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (0, "0 %"), (24.66, "24.7 %"), (100.0, "100 %")])
def test_percent(value: float | None, text: str) -> None:
    assert render.percent(value) == text


def test_tensor() -> None:
    assert render.tensor({"name": "pixels", "datatype": "FP32", "shape": [-1, 64]}) == "pixels FP32[-1,64]"


@pytest.mark.parametrize(
    ("now", "ago"),
    [
        pytest.param("2026-01-01T12:00:02Z", "1 second ago", id="seconds"),
        pytest.param("2026-01-01T12:03:59Z", "3 minutes ago", id="minutes"),
        pytest.param("2026-01-03T11:00:00Z", "1 day ago", id="days"),
        pytest.param("2026-01-01T11:59:00Z", "0 seconds ago", id="another machine's clock is behind"),
    ],
)
def test_a_moment_has_how_long_ago_it_was(now: str, ago: str) -> None:
    text = render.since("2026-01-01T12:00:00.5Z", datetime.fromisoformat(now))
    assert text == f"2026-01-01T12:00:00Z ({ago})"
