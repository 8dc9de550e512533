"""A text in pieces is what orjson makes of it whole, valid or not."""

from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from serving_runtime.protocol.http.codec import json_parser

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 99), st.sampled_from(["", 'a"b', "\\", '\\\\"', "[,{", "é"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", 'b"', "c\\", "d,["]), inner),
    max_leaves=20,
)
CHANGES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2), st.sampled_from([*',[]{}":\\ 1', ""])), max_size=2)


def changed(text: bytes, changes: list[tuple[float, int, str]]) -> bytes:
    """Return a text that is likely to be JSON no longer."""
    for place, length, insertion in changes:
        at = int(place * len(text))
        text = text[:at] + insertion.encode() + text[at + length :]
    return text


def whole(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return ValueError


def in_pieces(text: bytes, piece_bytes: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_parser, "PIECE_BYTES", piece_bytes)
        try:
            return json_parser.loads(text)
        except json_parser.MalformedError:
            return ValueError


@given(VALUES, st.booleans(), CHANGES, st.integers(1, 20))
@example([[1, 2], [3, {"a": [4, 5], "b": 6}]], False, [], 1)
def test_pieces_come_to_the_whole(value: Any, spaced: bool, changes: list[Any], piece_bytes: int) -> None:
    text = changed(orjson.dumps(value, option=orjson.OPT_INDENT_2 if spaced else None), changes)
    assert in_pieces(text, piece_bytes) == whole(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'{"a":[1,2,3],"a":[4,5],"b":[6,7],"a":8}', id="one name often"),
        pytest.param(b'{"a":[1,2,3],"b":1,"a":[4,5,6,7,8,9]}', id="one name again"),
        pytest.param(b"[1,]", id="nothing behind a comma"),
        pytest.param(b"[,1]", id="nothing before a comma"),
        pytest.param(b"[1],[2]", id="two"),
        pytest.param(b"[1,2", id="no end"),
        pytest.param(b"[1,2}", id="another end"),
        pytest.param(b"]", id="no beginning"),
        pytest.param(b'{"\\\\\\"":[1,2,3]}', id="escapes in a name"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"[" * 2000 + b"1,2" + b"]" * 2000, id="deep"),
    ],
)
def test_what_is_out_of_the_ordinary_is_taken_as_by_orjson(text: bytes) -> None:
    for piece_bytes in range(1, 12):
        assert in_pieces(text, piece_bytes) == whole(text)


def test_no_call_gets_more_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Counting:
        JSONDecodeError = orjson.JSONDecodeError

        @staticmethod
        def loads(text: bytes) -> Any:
            sizes.append(len(text))
            return orjson.loads(text)

    text = orjson.dumps({"inputs": [{"name": "x", "data": [[number, 0.5] for number in range(200_000)]}]})
    monkeypatch.setattr(json_parser, "orjson", Counting)
    assert json_parser.loads(text) == orjson.loads(text)
    assert max(sizes) < 2 * json_parser.PIECE_BYTES + 1000
