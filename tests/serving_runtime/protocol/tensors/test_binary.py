"""Binary tensors: exactly the declared bytes, or a refusal before anything is allocated."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.common.datatypes import BYTES, DATATYPES
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.protocol.tensors import binary

FP32 = DATATYPES["FP32"]


def packed(*elements: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(element)) + element for element in elements)


@pytest.mark.parametrize("name", [name for name in DATATYPES if name != "BYTES"])
@pytest.mark.feature("P9")
def test_a_number_tensor_survives_the_wire(name: str) -> None:
    datatype = DATATYPES[name]
    array = np.arange(6).astype(datatype.dtype).reshape(2, 3)
    wire = bytes(binary.encode(array, datatype))
    assert len(wire) == 6 * datatype.size_bytes
    back = binary.decode(memoryview(wire), datatype, (2, 3), "x")
    assert back.dtype == datatype.dtype
    assert np.array_equal(back, array)


def test_numbers_are_views_of_the_received_bytes() -> None:
    received = np.arange(4, dtype="f4").tobytes()
    array = binary.decode(memoryview(received), FP32, (4,), "x")
    assert np.shares_memory(array, np.frombuffer(received, "f4"))


def test_any_byte_but_zero_is_a_true_bool() -> None:
    array = binary.decode(memoryview(b"\x00\x01\xff"), DATATYPES["BOOL"], (3,), "x")
    assert array.tolist() == [False, True, True]
    assert array.view("u1").tolist() == [0, 1, 1]


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_bytes_survive_the_wire(elements: list[bytes]) -> None:
    wire = binary.encode(binary.bytes_array(elements), BYTES)
    assert wire == packed(*elements)
    assert binary.decode(memoryview(wire), BYTES, (len(elements),), "x").tolist() == elements


@given(st.binary(max_size=64), st.sampled_from(sorted(DATATYPES)), st.lists(st.integers(0, 2**40), max_size=4))
def test_whatever_bytes_come_they_are_taken_or_refused(content: bytes, name: str, shape: list[int]) -> None:
    try:
        dims = binary.checked_shape(shape, "x")
        array = binary.decode(memoryview(content), DATATYPES[name], dims, "x")
    except InvalidArgument:
        return
    assert array.shape == dims
    assert b"".join([binary.encode(array, DATATYPES[name])]) == content or name == "BOOL"


@pytest.mark.parametrize(
    ("content", "count", "sentence"),
    [
        pytest.param(packed(b"ab")[:3], 1, "1 BYTES elements in its shape, but only 3 bytes", id="half a length"),
        pytest.param(packed(b"ab")[:5], 1, "element of length 2 where 1 bytes are left", id="half an element"),
        pytest.param(b"\xff\xff\xff\xff", 1, "length 4294967295 where 0 bytes are left", id="a length of 4 GiB"),
        pytest.param(
            packed(b"abcdefgh"), 2, "holds fewer BYTES elements than the 2", id="one element where two are due"
        ),
        pytest.param(packed(b"a", b"b"), 1, "5 bytes after its last of 1 BYTES elements", id="two where one is due"),
        pytest.param(b"", 2**40, "1099511627776 BYTES elements in its shape, but only 0 bytes", id="a shape that lies"),
    ],
)
def test_wrong_bytes_tensors(content: bytes, count: int, sentence: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        binary.decode(memoryview(content), BYTES, (count,), "x")
    assert sentence in str(caught.value)


def test_too_few_numbers() -> None:
    with pytest.raises(InvalidArgument, match=r"unexpected byte size 7, expecting 8 for FP32 \[2\]"):
        binary.decode(memoryview(bytes(7)), FP32, (2,), "x")


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        pytest.param([-1], "dimensions must be integers >= 0", id="negative"),
        pytest.param([1.0], "dimensions must be integers >= 0", id="a float"),
        pytest.param([True], "dimensions must be integers >= 0", id="a bool"),
        pytest.param(["3"], "dimensions must be integers >= 0", id="a string"),
        pytest.param([None], "dimensions must be integers >= 0", id="null"),
        pytest.param([2**62, 2**62], "too large", id="a product that overflows 64 bits"),
        pytest.param([0, 2**41], "too large", id="a huge dimension beside an empty one"),
        pytest.param([10**100], "too large", id="a dimension beyond all"),
        pytest.param([1] * 33, "33 dimensions; at most 32", id="too many dimensions"),
    ],
)
def test_shapes_that_no_tensor_can_have(shape: list[object], sentence: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        binary.checked_shape(shape, "x")
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("name", [None, 7, "FLOAT", "fp32", ["FP32"], {}])
def test_unknown_datatypes_are_refused_with_those_known(name: object) -> None:
    with pytest.raises(InvalidArgument, match="V2 knows BOOL, UINT8"):
        binary.datatype_named(name, "x")
