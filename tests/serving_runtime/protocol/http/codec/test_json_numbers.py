"""Infer requests read by blocks of numbers: as the plain way reads them, or not at all."""

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import InvalidArgument, ServingError
from serving_runtime.protocol.http.codec import infer_head, json_body, json_numbers
from serving_runtime.protocol.tensors import json_tensors

NUMBERS = [name for name in DATATYPES if name not in ("BYTES", "BOOL")]
PADDING = " " * 1100
"""Spaces that make a short text worth it."""


def request(data: str, *, datatype: str = "FP32", shape: str = "[2]", rest: str = "") -> bytes:
    item = f'{{"name": "x", "datatype": "{datatype}", "shape": {shape}, "data": {data}}}'
    return f'{{{rest}"inputs": [{item}]}}{PADDING}'.encode()


def outcome(head: Any) -> object:
    """Return what a head's inputs come to, or the sentence by which they are refused."""
    try:
        return [
            (item.name, item.datatype.name, json_tensors.decode(item.data, item.datatype, item.shape, item.name))
            for item in head().inputs
        ]
    except ServingError as error:
        return type(error), error.message


def plainly(text: bytes) -> Any:
    return infer_head.head_of(json_body.json_object(text))


def assert_read_alike(text: bytes) -> None:
    quick, plain = outcome(lambda: infer_head.parse(text)), outcome(lambda: plainly(text))
    if not isinstance(plain, list) or not isinstance(quick, list):
        assert quick == plain
        return
    assert [item[:2] for item in quick] == [item[:2] for item in plain]
    for (*_, found), (*_, right) in zip(quick, plain, strict=True):
        assert (found.dtype, found.shape, found.tobytes()) == (right.dtype, right.shape, right.tobytes())


@given(
    st.sampled_from(NUMBERS),
    st.lists(st.integers(-(2**65), 2**65) | st.integers(-200, 200) | st.floats(width=32) | st.floats(), max_size=5),
)
def test_numbers_are_read_as_the_plain_way_reads_them(name: str, numbers: list[float]) -> None:
    data = "[" + ", ".join(map(repr, numbers)) + "]"
    assert_read_alike(request(data, datatype=name, shape=f"[{len(numbers)}]"))


@given(st.text("0123456789.eE+-,[] ", max_size=24), st.sampled_from(NUMBERS))
def test_whatever_stands_for_numbers_is_read_or_refused_as_the_plain_way_does(data: str, name: str) -> None:
    assert_read_alike(request(f"[{data}]", datatype=name, shape=f"[{data.count(',') + 1}]"))


Json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | st.text("[{a"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
    max_leaves=6,
)


@given(
    st.fixed_dictionaries(
        {"inputs": st.lists(
            st.fixed_dictionaries(
                {"name": st.just("x"), "data": st.lists(st.integers(0, 9), max_size=3) | Json},
                optional={
                    "datatype": st.sampled_from([*DATATYPES, "FP31", None]),
                    "shape": st.lists(st.integers(-1, 3), max_size=2) | Json,
                    "parameters": Json,
                },
            )
            | Json,
            max_size=2,
        )},
        optional={"id": st.just("a") | Json, "parameters": Json, "outputs": Json},
    )
)  # fmt: skip
def test_any_request_is_read_or_refused_as_the_plain_way_does(content: dict[str, Any]) -> None:
    assert_read_alike(orjson.dumps(content) + PADDING.encode())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(request("[[1], [2]]"), id="nested for a flat shape"),
        pytest.param(request("[[1, 2]]", shape="[1, 2]"), id="nested"),
        pytest.param(request("[1, [2]]"), id="half nested"),
        pytest.param(request("[1, [], [2]]", shape="[3]"), id="half nested, as many as elements"),
        pytest.param(request("[1, 2]", shape="[[2]]"), id="nested shape"),
        pytest.param(request("[1, 2]", rest='"id": "[", '), id="a bracket in a string"),
        pytest.param(request("[1, 2], \"data\": [3, 4]"), id="data twice"),
        pytest.param(request("[1, 2]", rest='"inputs": [], '), id="inputs twice"),
        pytest.param(request("[1, true]"), id="a bool"),
        pytest.param(request("[1, 18446744073709551616]"), id="an integer of 65 bits"),
        pytest.param(request("[1, -0]"), id="minus zero, an integer"),
        pytest.param(request("[1, 1e400]"), id="beyond FP64"),
        pytest.param(request("[1, 2.0]", datatype="INT32"), id="a fraction for an integer"),
        pytest.param(request("[0, 300]", datatype="UINT8"), id="too large for UINT8"),
        pytest.param(request('"12"'), id="text for data"),
        pytest.param(b"\xef\xbb\xbf" + request("[1, 2]"), id="a byte order mark"),
        pytest.param(request("[1, 2]") + b"x", id="more behind it"),
        pytest.param(request("[1, 2]", rest='"id": "\xff", ').replace(b"\xc3\xbf", b"\xff"), id="not UTF-8"),
        pytest.param(request("[" * 2000 + "]" * 2000), id="very deep"),
        pytest.param(request("[1, 2]", rest=f'"parameters": {{"k": [{"[], " * 1500}1]}}, '), id="many arrays"),
    ],
)  # fmt: skip
def test_what_is_out_of_the_ordinary_is_read_or_refused_as_the_plain_way_does(text: bytes) -> None:
    assert_read_alike(text)


def test_flat_numbers_are_taken_without_a_list_of_them() -> None:
    content = json_numbers.infer_object(
        request("[1, 2.5]", rest='"id": "a", "parameters": {"k": [1]}, '.replace("[1]", "1"))
    )
    assert content is not None
    data = content["inputs"][0]["data"]
    assert isinstance(data, np.ndarray)
    assert data.tolist() == [1.0, 2.5]
    assert (content["id"], content["parameters"]) == ("a", {"k": 1})


def test_one_text_after_another_is_read_while_the_numbers_of_the_first_are_in_use() -> None:
    first = json_numbers.infer_object(request("[1, 2]"))
    for _ in range(3):
        assert json_numbers.infer_object(request("[null, 2]")) is None
    second = json_numbers.infer_object(request("[3, 4]"))
    assert first is not None
    assert second is not None
    assert [content["inputs"][0]["data"].tolist() for content in (first, second)] == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("value", "refusal"),
    [("[]", "more than 1000000 arrays and objects"), ("{}", "more than 16386 objects")],
    ids=["arrays", "objects"],
)
def test_a_large_text_of_many_objects_is_refused_before_it_is_parsed(value: str, refusal: str) -> None:
    many = '"parameters": {' + ", ".join(f'"{number}": {value}' for number in range(1_000_001)) + "}, "
    with pytest.raises(InvalidArgument, match=refusal):
        infer_head.parse(request("[1, 2]", rest=many))
