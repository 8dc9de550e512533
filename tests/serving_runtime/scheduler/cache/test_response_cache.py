"""What is kept, what is forgotten, and that no request gets another's answer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from serving_runtime.common.datatypes import ABSENT, Array
from serving_runtime.scheduler.cache.response_cache import ResponseCache, digest

pytestmark = pytest.mark.feature("C12")


def texts(*values: bytes) -> Array:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def test_what_was_put_is_found_again_read_only_and_apart_from_its_batch() -> None:
    cache = ResponseCache(10_000)
    batch = np.arange(8, dtype="f4").reshape(4, 2)
    cache.put(b"k", [batch[1:2]])
    batch[:] = 0
    (found,) = cache.get(b"k") or ()
    assert found.tolist() == [[2, 3]]
    assert found.base is None
    assert not found.flags.writeable
    assert cache.get(b"other") is None


def test_the_oldest_use_is_forgotten_first() -> None:
    cache = ResponseCache(3 * (512 + 100))
    for key in (b"a", b"b", b"c"):
        cache.put(key, [np.zeros(100, "u1")])
    cache.get(b"a")
    cache.put(b"d", [np.zeros(100, "u1")])
    assert [cache.get(key) is not None for key in (b"a", b"b", b"c", b"d")] == [True, False, True, True]
    assert cache.used_bytes == 3 * (512 + 100)


def test_what_is_larger_than_the_cache_is_not_kept_and_drives_nothing_out() -> None:
    cache = ResponseCache(2000)
    cache.put(b"a", [np.zeros(100, "u1")])
    cache.put(b"b", [np.zeros(2000, "u1")])
    cache.put(b"c", [texts(b"x" * 2000)])
    assert (len(cache), cache.used_bytes) == (1, 612)


SAME = np.zeros((2, 2), "f4")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param([SAME], [SAME.reshape(4, 1)], id="another shape"),
        pytest.param([SAME], [SAME.view("i4")], id="another datatype of the same bytes"),
        pytest.param([texts(b"ab", b"c")], [texts(b"a", b"bc")], id="strings parted elsewhere"),
        pytest.param([SAME, ABSENT], [ABSENT, SAME], id="another input left out"),
        pytest.param([np.zeros(0, "f4")], [], id="an empty array and none"),
    ],
)
def test_different_inputs_have_different_keys(one: list[Array], other: list[Array]) -> None:
    assert digest(b"m", one) != digest(b"m", other)


def test_equal_inputs_have_equal_keys_whatever_their_layout_and_models_keys_of_their_own() -> None:
    array = np.arange(6, dtype="i8").reshape(2, 3)
    assert digest(b"m", [array]) == digest(b"m", [np.asfortranarray(array)])
    assert digest(b"m", [array]) != digest(b"n", [array])
    cache = ResponseCache(1)
    assert cache.namespace() != cache.namespace()


@given(sizes=st.lists(st.integers(0, 400), max_size=30), limit=st.integers(1, 3000))
def test_it_never_holds_more_than_its_size(sizes: list[int], limit: int) -> None:
    cache = ResponseCache(limit)
    for number, size in enumerate(sizes):
        cache.put(bytes([number]), [np.zeros(size, "u1")])
        assert cache.used_bytes <= limit


@given(arrays.arrays("i2", (2,)), arrays.arrays("i2", (2,)))
def test_a_key_tells_contents_apart(one: Array, other: Array) -> None:
    assert (digest(b"", [one]) == digest(b"", [other])) is np.array_equal(one, other)
