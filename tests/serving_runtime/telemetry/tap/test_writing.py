"""JSON in pieces is JSON."""

import base64

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.telemetry.tap import writing
from serving_runtime.telemetry.tap.writing import Binary, written

Json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=5), Json, max_size=5))
def test_plain_values_are_read_back_the_same(value: dict[str, object]) -> None:
    assert orjson.loads(written(value)) == value


@pytest.mark.parametrize("size", [0, 1, writing._ELEMENTS_AT_ONCE, 3 * writing._ELEMENTS_AT_ONCE + 1])
def test_arrays_and_lists_longer_than_a_piece_are_whole(size: int) -> None:
    numbers = np.arange(size, dtype=np.float32) / 7
    texts = [str(number) for number in range(size)]
    found = orjson.loads(written({"numbers": numbers, "texts": texts}))
    assert np.array(found["numbers"], np.float32).tobytes() == numbers.tobytes()
    assert found["texts"] == texts


@pytest.mark.parametrize(
    "size", [0, 1, writing._BYTES_AT_ONCE - 1, writing._BYTES_AT_ONCE, 2 * writing._BYTES_AT_ONCE + 2]
)
def test_bytes_longer_than_a_piece_are_one_base64_string(size: int) -> None:
    content = np.random.default_rng(0).bytes(size)
    assert base64.b64decode(orjson.loads(written({"data": [Binary(content)]}))["data"][0]) == content
