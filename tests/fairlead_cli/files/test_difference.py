"""The difference of two files, line by line."""

import pytest

from fairlead_cli.files import difference


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        pytest.param({"a": {"b": 1}}, {"a": {"b": 1}}, [], id="the same"),
        pytest.param({"a": {"b": "x"}}, {"a": {"b": "y"}}, ["  a.b: x -> y"], id="another value"),
        pytest.param(None, {"a": 1}, ["+ a: 1"], id="all new"),
        pytest.param({"a": 1, "b": True}, {"a": 1}, ["- b: true"], id="a field that goes"),
        pytest.param({"s": [{"w": 1}]}, {"s": [{"w": 2}, {"w": 3}]}, ["  s[0].w: 1 -> 2", "+ s[1].w: 3"], id="a list"),
        pytest.param({"a": {}}, {"a": {"b": None}}, ["- a: {}", "+ a.b: null"], id="empty and null"),
    ],
)
def test_a_line_for_each_field_that_differs(before: object, after: object, lines: list[str]) -> None:
    assert difference.lines(before, after) == lines
