import base64
import json
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import InvalidInput
from common.tensors import DTYPES
from integrations.v2 import tensors as v2


def body(*tensors, where="inputs"):
    return json.dumps({where: list(tensors)}).encode()


def tensor(datatype="FP32", shape=(2,), data=(1, 2), **more):
    data = list(data) if isinstance(data, tuple) else data
    return {"name": "x", "datatype": datatype, "shape": list(shape), "data": data, **more}


def base64_of(content):
    return {"parameters": {"encoding": "base64"}, "data": [base64.b64encode(content).decode()]}


@pytest.mark.parametrize(
    ("datatype", "data"),
    [
        ("BOOL", [True, False]),
        *((f"{sign}INT{bits}", [0, 100]) for sign in ("", "U") for bits in (8, 16, 32, 64)),
        ("INT64", [-(2**63), 2**63 - 1]),
        ("UINT64", [0, 2**64 - 1]),
        *((name, [0.5, -2]) for name in ("FP16", "FP32", "FP64", "BF16")),
        ("BYTES", ["a", "ü"]),
    ],
)
def test_json_of_every_datatype_becomes_values_of_its_type(datatype, data):
    values = v2.inputs_of(body(tensor(datatype, data=data)))["x"].values
    assert values.dtype == DTYPES[datatype]
    assert values.tolist() == ([each.encode() for each in data] if datatype == "BYTES" else data)


def test_nested_data_is_row_major():
    nested = tensor("INT32", (2, 1, 2), [[[1, 2]], [[3, 4]]])
    assert v2.outputs_of(body(nested, where="outputs"))["x"].values.tolist() == [[[1, 2]], [[3, 4]]]


@pytest.mark.parametrize(
    ("datatype", "content", "expected"),
    [
        ("FP16", np.array([1.5, np.inf], "<f2").tobytes(), [1.5, np.inf]),
        ("BF16", struct.pack("<HH", 0x3FC0, 0xFF80), [1.5, -np.inf]),
        ("FP32", np.array([0.1, -0.0], "<f4").tobytes(), [np.float32(0.1), -0.0]),
        ("BOOL", b"\x01\x00", [True, False]),
        ("BYTES", struct.pack("<I", 2) + b"\xff\x00" + struct.pack("<I", 0), [b"\xff\x00", b""]),
    ],
)
def test_binary_behind_the_json_and_base64_of_it_are_the_same(datatype, content, expected):
    recorded = {key: value for key, value in tensor(datatype).items() if key != "data"}
    head = body(recorded | {"parameters": {"binary_data_size": len(content)}})
    binary = v2.inputs_of(head + content, json_bytes=len(head))["x"]
    in_text = v2.inputs_of(body(recorded | base64_of(content)))["x"]
    assert binary.values.tolist() == expected
    assert binary.equals(in_text)


def test_several_binary_tensors_are_taken_in_order():
    head = body(
        *({"name": name, "datatype": "UINT8", "shape": [1], "parameters": {"binary_data_size": 1}} for name in "ab")
    )
    read = v2.inputs_of(head + b"\x07\x09", json_bytes=len(head))
    assert {name: each.values.tolist() for name, each in read.items()} == {"a": [7], "b": [9]}


def test_what_somebody_parsed_already_is_read_as_it_is():
    assert v2.inputs_of({"inputs": [tensor()]})["x"].values.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe\x00", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "no object"),
        (b"{}", "no list inputs"),
        (b'{"inputs": [1]}', "no tensor with a name"),
        (body(tensor(), tensor()), "another tensor has already"),
        (body(tensor("FP8")), "datatype is 'FP8'"),
        (body(tensor(shape=[-1])), "dimensions are whole numbers"),
        (body(tensor(shape=[2**40, 2**40])), "dimensions are whole numbers"),
        (body(tensor(shape=[2**20, 2**20, 0], data=[])), "more than can have been recorded"),
        (body(tensor(shape=[True])), "dimensions are whole numbers"),
        (body(tensor(shape=[1] * 40)), "at most 32 dimensions"),
        (body(tensor(shape=[3])), "3 elements, but data has 2"),
        (body(tensor(data="12")), "data is no list"),
        (body(tensor(data=[1, "2"])), "no FP32"),
        (body(tensor(data=[1, None])), "no FP32"),
        (body(tensor("INT8", data=[1, 2.0])), "no INT8"),
        (body(tensor("INT8", data=[1, 128])), "outside of what INT8 can hold"),
        (body(tensor("FP32", data=[1, 10**400])), "outside of what FP32 can hold"),
        (body(tensor("BOOL", data=[1, 0])), "no BOOL"),
        (body(tensor("BYTES", data=["a", 1])), "no text"),
        (body(tensor(data=[1, [2]])), "lists beside elements"),
        (body(tensor(**base64_of(b"123"))), "2 elements of 4 bytes"),
        (body(tensor("BYTES", **base64_of(struct.pack("<I", 9) + b"abcde"))), "should have 9 bytes"),
        (body(tensor("BYTES", **base64_of(struct.pack("<I", 4) + b"abcd"))), "not exactly as many"),
        (body(tensor("BYTES", (10**6,), **base64_of(b"abcd"))), "more than 4 bytes of data can hold"),
        (body(tensor(parameters={"encoding": "base64"}, data=["*"])), "no base64"),
        (body(tensor(parameters={"binary_data_size": 8})), "0 bytes are left"),
        (body(tensor(parameters={"binary_data_size": "8"})), "no number of bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_body_that_lies_is_refused_with_a_sentence(content, sentence):
    with pytest.raises(InvalidInput) as refused:
        v2.inputs_of(content)
    assert sentence in refused.value.message
    assert len(refused.value.message) < 400


def test_bytes_that_belong_to_no_tensor_are_refused():
    head = body(tensor())
    with pytest.raises(InvalidInput, match="belong to no tensor"):
        v2.inputs_of(head + b"more", json_bytes=len(head))


def test_a_body_that_is_too_large_is_not_even_parsed():
    with pytest.raises(InvalidInput, match="at most"):
        v2.inputs_of(b"[" * (v2.MOST_BYTES + 1))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
TENSOR = st.fixed_dictionaries(
    {
        "name": st.just("x") | JSON,
        "datatype": st.sampled_from([*DTYPES]) | JSON,
        "shape": st.lists(st.integers(-1, 3)) | JSON,
    },
    optional={
        "data": JSON,
        "parameters": st.fixed_dictionaries({}, optional={"encoding": st.just("base64"), "binary_data_size": JSON}),
    },
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.binary() | st.builds(lambda items: json.dumps({"inputs": items}).encode(), st.lists(TENSOR, max_size=3)),
    st.none() | st.integers(),
)
def test_whatever_was_recorded_is_read_or_refused(content, json_bytes):
    try:
        tensors = v2.inputs_of(content, json_bytes)
    except InvalidInput:
        return
    for each in tensors.values():
        assert each.values.dtype == DTYPES[each.datatype]
