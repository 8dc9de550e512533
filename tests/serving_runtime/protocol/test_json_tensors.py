"""JSON tensors: nested or flat, of the declared type, complete."""

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from serving_runtime.datatypes import DATATYPES
from serving_runtime.errors import InvalidArgument, ServingError, Unsupported
from serving_runtime.protocol import json_tensors

JSON_NUMBERS = [name for name, datatype in DATATYPES.items() if datatype.json and name != "BYTES"]


@given(st.data())
@pytest.mark.feature("P10")
def test_a_tensor_survives_json_flat_and_nested(data: st.DataObject) -> None:
    datatype = DATATYPES[data.draw(st.sampled_from(JSON_NUMBERS))]
    elements = {"allow_nan": False, "allow_infinity": False} if datatype.dtype.kind == "f" else {}
    shapes = hnp.array_shapes(max_dims=3, max_side=4)
    array = data.draw(hnp.arrays(datatype.dtype, shapes, elements=hnp.from_dtype(datatype.dtype, **elements)))
    written = orjson.dumps(json_tensors.encode(array, datatype, "y"), option=orjson.OPT_SERIALIZE_NUMPY)
    for sent in (orjson.loads(written), orjson.loads(orjson.dumps(array.tolist()))):
        back = json_tensors.decode(sent, datatype, array.shape, "x")
        assert back.dtype == datatype.dtype
        assert np.array_equal(back, array)


def test_text_survives_json() -> None:
    array = json_tensors.decode([["é"], ["a\u0000b"]], DATATYPES["BYTES"], (2, 1), "x")
    assert array.tolist() == [["é".encode()], [b"a\x00b"]]
    assert json_tensors.encode(array, DATATYPES["BYTES"], "y") == ["é", "a\u0000b"]


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=12,
)


@given(Json, st.sampled_from(sorted(DATATYPES)), st.lists(st.integers(0, 5), max_size=3))
def test_whatever_json_comes_it_is_taken_or_refused(sent: object, name: str, shape: list[int]) -> None:
    try:
        array = json_tensors.decode(sent, DATATYPES[name], tuple(shape), "x")
    except ServingError:
        return
    assert array.shape == tuple(shape)
    assert array.dtype == DATATYPES[name].dtype


@pytest.mark.parametrize(
    ("name", "shape", "sent", "sentence"),
    [
        pytest.param("FP32", (2,), [1], "got 1 elements, expecting 2", id="too few"),
        pytest.param("FP32", (1,), [1, 2], "got 2 elements, expecting 1", id="too many"),
        pytest.param("FP32", (1,), 1, "data must be an array", id="no array"),
        pytest.param("FP32", (1,), ["1"], "FP32 data must be numbers", id="text for a number"),
        pytest.param("FP32", (1,), [None], "FP32 data must be numbers", id="null for a number"),
        pytest.param("FP32", (1,), [True], "FP32 data must be numbers", id="a bool for a number"),
        pytest.param("FP32", (1,), [1e39], "a number that does not fit FP32", id="too large for FP32"),
        pytest.param("FP64", (1,), [10**400], "a number that does not fit FP64", id="too large for FP64"),
        pytest.param("INT32", (1,), [1.5], "INT32 data must be integers", id="a fraction for an integer"),
        pytest.param("INT8", (1,), [128], "a number that does not fit INT8", id="too large for INT8"),
        pytest.param("UINT8", (1,), [-1], "a number that does not fit UINT8", id="negative for an unsigned"),
        pytest.param("UINT64", (1,), [2**64], "a number that does not fit UINT64", id="too large for UINT64"),
        pytest.param("BOOL", (1,), [1], "BOOL data must be true or false", id="a number for a bool"),
        pytest.param("BYTES", (1,), [1], "BYTES data must be strings", id="a number for text"),
        pytest.param("FP32", (2, 2), [[1, 2], [3]], "not nested as its shape [2, 2] says", id="ragged"),
        pytest.param("FP32", (2, 2), [[1, 2], 3], "not nested as its shape [2, 2] says", id="half nested"),
        pytest.param(
            "FP32", (4,), [[1, 2], [3, 4]], "has length 2, not as its shape [4]", id="nested for a flat shape"
        ),
        pytest.param("FP32", (2, 2), [[1, [2]], [3, 4]], "FP32 data must be numbers", id="nested too deep"),
    ],
)
def test_wrong_data_is_refused(name: str, shape: tuple[int, ...], sent: object, sentence: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        json_tensors.decode(sent, DATATYPES[name], shape, "x")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", ["FP16", "BF16"])
def test_datatypes_without_a_json_form_are_sent_back_to_binary(name: str) -> None:
    with pytest.raises(Unsupported, match="binary tensor data extension"):
        json_tensors.decode([1], DATATYPES[name], (1,), "x")
    with pytest.raises(Unsupported, match="request it with binary_data true"):
        json_tensors.encode(np.zeros(1, DATATYPES[name].dtype), DATATYPES[name], "y")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_json_cannot_carry_is_refused_rather_than_turned_into_null(value: float) -> None:
    with pytest.raises(InvalidArgument, match="holds NaN or infinity"):
        json_tensors.encode(np.array([value], "f4"), DATATYPES["FP32"], "y")
    with pytest.raises(InvalidArgument, match="not UTF-8"):
        json_tensors.encode(np.array([b"\xff"], dtype=object), DATATYPES["BYTES"], "y")
