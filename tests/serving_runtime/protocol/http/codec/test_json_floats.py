"""Infer requests with large FP32 arrays, read by compiled code: as the plain way reads them, or not at all."""

import json
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.common.errors import ServingError
from serving_runtime.protocol.http.codec import infer_head, json_body, json_floats
from serving_runtime.protocol.tensors import json_tensors

floats = pytest.importorskip("serving_runtime.protocol.http.codec.compiled.floats", reason="numba is not installed")

MANY = 4096
VALUES = ", ".join(f"{number / 64:.4f}" for number in range(MANY))


DIGITS = st.integers(0, 9)


def request(data: str = f"[{VALUES}]", *, datatype: str = "FP32", shape: str = f"[{MANY}]", rest: str = "") -> bytes:
    item = f'{{"name": "x", "datatype": "{datatype}", "shape": {shape}, "data": {data}}}'
    return f'{{{rest}"inputs": [{item}]}}'.encode()


SPELT_OTHERWISE = request("7", rest=f'"parameters": {{"data": [{VALUES}]}}, ').replace(b'"data": 7', b'"d\\u0061ta": 0')


def read(text: bytes) -> dict[str, Any] | None:
    return json_floats.object_read(text, {"FP32": floats.read})


def tensors(content: dict[str, Any]) -> Any:
    """Return what a request's inputs come to, or the sentence by which they are refused."""
    try:
        head = infer_head.head_of(content)
        return head.id, [
            (item.name, json_tensors.decode(item.data, item.datatype, item.shape, item.name).tobytes())
            for item in head.inputs
        ]
    except ServingError as error:
        return error.message


def assert_as_the_plain_way(text: bytes) -> None:
    content = read(text)
    assert content is not None
    assert tensors(content) == tensors(json_body.json_object(text))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(request(), id="flat"),
        pytest.param(request(shape="[64, 64]"), id="of two dimensions"),
        pytest.param(request(rest='"id": "a", "parameters": {"k": 1}, '), id="with an id and parameters"),
        pytest.param(request(rest='"inputs": [], '), id="inputs twice"),
        pytest.param(request().replace(b'"data": [', b'"data"\n :\t[ '), id="with space around"),
    ],
)
def test_a_large_array_is_taken_as_fp32(text: bytes) -> None:
    assert_as_the_plain_way(text)
    content = read(text)
    assert content is not None
    assert content["inputs"][0]["data"].dtype == np.float32


def test_small_arrays_beside_a_large_one_are_lists() -> None:
    small = '{"name": "y", "datatype": "INT64", "shape": [2], "data": [1, 2]}'
    text = request()[:-2] + f", {small}]}}".encode()
    assert_as_the_plain_way(text)


def test_data_may_come_first() -> None:
    item = f'{{"data": [{VALUES}], "shape": [{MANY}], "datatype": "FP32", "name": "x"}}'
    assert_as_the_plain_way(f'{{"parameters": {{"k": "v"}}, "inputs": [{item}]}}'.encode())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(request(f"[[{VALUES}]]", shape=f"[1, {MANY}]"), id="nested"),
        pytest.param(request(datatype="FP64"), id="another datatype"),
        pytest.param(request(shape='"all"'), id="no shape"),
        pytest.param(request(shape="[4095]"), id="another shape"),
        pytest.param(request(shape="[-4096]"), id="a negative shape"),
        pytest.param(request(shape="[true, 4096]"), id="a shape with a truth value"),
        pytest.param(request(shape="[9999999999]"), id="a shape beyond the text"),
        pytest.param(request().replace(b"63.9844", b"63.98x4"), id="a letter in a number"),
        pytest.param(request().replace(b"63.9844", b"null"), id="a null"),
        pytest.param(request(f"[{VALUES}], \"data\": [1]"), id="data twice"),
        pytest.param(request(rest=f'"parameters": {{"data": [{VALUES}]}}, '), id="data elsewhere as well"),
        pytest.param(SPELT_OTHERWISE, id="data by another spelling"),
        pytest.param(request(rest='"id": "data", '), id="data in a string"),
        pytest.param(request(rest='"id": "\\"", '), id="an escape"),
        pytest.param(request()[:-1], id="cut off"),
        pytest.param(request()[:-3], id="cut off behind the array"),
        pytest.param(request() + b"}", id="more behind it"),
        pytest.param(request() + b" " * 100_000, id="much behind it"),
        pytest.param(b"[" + request() + b"]", id="an array of requests"),
        pytest.param(request().replace(b'"inputs": [', b'"inputs": [1, '), id="an input that is no object"),
    ],
)  # fmt: skip
def test_what_is_out_of_the_ordinary_is_left(text: bytes) -> None:
    assert read(text) is None


@given(
    st.lists(
        st.fixed_dictionaries(
            {"name": st.sampled_from("xy"), "data": st.lists(DIGITS, max_size=3)},
            optional={
                "datatype": st.sampled_from(["FP32", "INT64", "BYTES", None]),
                "shape": st.lists(st.integers(0, 3), max_size=2),
                "parameters": st.dictionaries(st.sampled_from(["data", "a"]), DIGITS | st.lists(DIGITS)),
            },
        ),
        max_size=3,
    ),
    st.sampled_from(["inputs", "outputs", "data"]),
)
def test_any_request_is_read_as_the_plain_way_does_or_left(inputs: list[dict[str, Any]], name: str) -> None:
    large = {"name": "z", "datatype": "FP32", "shape": [MANY], "data": [number / 64 for number in range(MANY)]}
    text = orjson.dumps({name: [*inputs, large]})
    content = read(text)
    if content is not None:
        assert tensors(content) == tensors(orjson.loads(text))


def test_until_there_is_compiled_code_requests_are_read_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    text = request()
    asked: list[int] = []

    class Waiting:
        def reader(self, text_bytes: int) -> Any:
            asked.append(text_bytes)
            return None if len(asked) == 1 else floats.read

    monkeypatch.setattr(json_floats, "compiler", Waiting())
    datas = [infer_head.parse(text).inputs[0].data.dtype for _ in range(2)]
    assert datas == [np.float64, np.float32]
    infer_head.parse(json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}).encode())
    assert asked == [len(text)] * 2
