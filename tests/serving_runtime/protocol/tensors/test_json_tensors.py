"""JSON tensors: nested or flat, of the declared type, complete."""

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from serving_runtime.common.datatypes import DATATYPES, to_bf16
from serving_runtime.common.errors import InvalidArgument, ServingError
from serving_runtime.protocol.tensors import json_tensors

NUMBERS_OF_NUMPY = [name for name in DATATYPES if name not in ("BYTES", "BF16")]


@given(st.data())
@pytest.mark.feature("P10")
def test_a_tensor_survives_json_flat_and_nested(data: st.DataObject) -> None:
    datatype = DATATYPES[data.draw(st.sampled_from(NUMBERS_OF_NUMPY))]
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
        pytest.param("FP16", (1,), [65520], "a number that does not fit FP16", id="too large for FP16"),
        pytest.param("BF16", (1,), [3.4e38], "a number that does not fit BF16", id="too large for BF16"),
        pytest.param("BF16", (1,), [1e39], "a number that does not fit BF16", id="too large for FP32 even"),
        pytest.param("BF16", (1,), ["1"], "BF16 data must be numbers", id="text for a number of BF16"),
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


def test_every_value_of_the_halves_survives_json() -> None:
    bits = np.arange(2**16, dtype="<u2")
    for name in ("FP16", "BF16"):
        datatype = DATATYPES[name]
        exponent = 0x7C00 if name == "FP16" else 0x7F80
        array = bits[(bits & exponent) != exponent].view(datatype.dtype)  # without infinity and NaN
        text = orjson.dumps(json_tensors.encode(array, datatype, "y"), option=orjson.OPT_SERIALIZE_NUMPY)
        assert json_tensors.decode(orjson.loads(text), datatype, array.shape, "x").tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("name", "sent", "bits"),
    [
        pytest.param("FP16", 0.1, 0x2E66, id="FP16 rounds to the nearest"),
        pytest.param("FP16", -2, 0xC000, id="an integer is a number of FP16"),
        pytest.param("BF16", 0.1, 0x3DCD, id="BF16 rounds up where that is nearer"),
        pytest.param("BF16", 1 + 2**-8, 0x3F80, id="of two that are as near, the even one"),
        pytest.param("BF16", 1 + 3 * 2**-8, 0x3F82, id="which may be the upper one"),
        pytest.param("BF16", -2, 0xC000, id="an integer is a number of BF16"),
    ],
)
def test_numbers_of_the_halves_are_rounded(name: str, sent: float, bits: int) -> None:
    datatype = DATATYPES[name]
    for data in ([sent], np.array([sent], "f8")):  # as the plain reader and as the quick one hand them over
        assert json_tensors.decode(data, datatype, (1,), "x").view("<u2").tolist() == [bits]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_json_cannot_carry_is_refused_rather_than_turned_into_null(value: float) -> None:
    with pytest.raises(InvalidArgument, match="holds NaN or infinity"):
        json_tensors.encode(np.array([value], "f4"), DATATYPES["FP32"], "y")
    with pytest.raises(InvalidArgument, match="holds NaN or infinity"):
        json_tensors.encode(np.array([value], "f2"), DATATYPES["FP16"], "y")
    with pytest.raises(InvalidArgument, match="holds NaN or infinity"):
        json_tensors.encode(to_bf16(np.array([value], "f4")), DATATYPES["BF16"], "y")
    with pytest.raises(InvalidArgument, match="not UTF-8"):
        json_tensors.encode(np.array([b"\xff"], dtype=object), DATATYPES["BYTES"], "y")
