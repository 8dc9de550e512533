from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import durations
from common.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("10s", timedelta(seconds=10), id="seconds"),
        pytest.param("1m30s", timedelta(seconds=90), id="two units add up"),
        pytest.param("2h", timedelta(hours=2), id="hours"),
        pytest.param("250ms", timedelta(milliseconds=250), id="milliseconds are not minutes"),
        pytest.param("1.5h", timedelta(minutes=90), id="a fraction of a unit"),
        pytest.param("0.1s", timedelta(milliseconds=100), id="a fraction that floats cannot hold"),
        pytest.param("7us", timedelta(microseconds=7), id="microseconds"),
        pytest.param("0", timedelta(0), id="zero needs no unit"),
        pytest.param("0s", timedelta(0), id="zero may have one"),
    ],
)
def test_parse(text: str, expected: timedelta) -> None:
    assert durations.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("10", id="no unit"),
        pytest.param("s", id="no number"),
        pytest.param("-5s", id="negative"),
        pytest.param("10 s", id="a space"),
        pytest.param("1d", id="a unit Kubernetes does not have"),
        pytest.param("1e3s", id="scientific notation"),
        pytest.param("٣s", id="digits that are not ASCII"),
        pytest.param("0.0000001s", id="finer than a microsecond"),
        pytest.param("99999999999h", id="longer than a timedelta holds"),
        pytest.param("1" * 100_000 + "s", id="a very long number"),
    ],
)
def test_parse_refuses(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        durations.parse(text, field="steps[0].hold")
    assert refusal.value.field == "steps[0].hold"
    assert "write it like 10s, 1m30s or 2" in refusal.value.message
    assert len(refusal.value.message) < 200


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (timedelta(0), "0s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(days=3), "72h"),
        (timedelta(milliseconds=1500), "1s500ms"),
    ],
)
def test_render(duration: timedelta, expected: str) -> None:
    assert durations.render(duration) == expected


def test_render_refuses_a_negative_duration() -> None:
    with pytest.raises(ValueError, match="negative"):
        durations.render(timedelta(seconds=-1))


@given(st.timedeltas(min_value=timedelta(0)))
def test_what_is_rendered_is_parsed_back_exactly(duration: timedelta) -> None:
    assert durations.parse(durations.render(duration)) == duration
