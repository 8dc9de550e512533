"""Compiled code reads the same FP32 numbers as everybody else, or none."""

import json
import random
import struct
from collections.abc import Sequence

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

floats = pytest.importorskip("serving_runtime.protocol.http.codec.compiled.floats", reason="numba is not installed")

BEFORE = b'{"inputs":[{"name":"x","datatype":"FP32","data":['
AFTER = b"]}]}"
FILLING = "0.5, " * 13
"""Text is read from 64 bytes on."""


def read(numbers: str, count: int, before: bytes = BEFORE) -> NDArray[np.float32] | None:
    text = before + numbers.encode() + AFTER
    found: NDArray[np.float32] | None = floats.read(text, len(before), len(before) + len(numbers.encode()), count)
    return found


def right(numbers: str) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return np.array(orjson.loads(f"[{numbers}]"), np.float64).astype(np.float32)


def assert_read(texts: Sequence[str], separator: str = ", ") -> None:
    numbers = FILLING + separator.join(texts)
    found = read(numbers, 13 + len(texts))
    assert found is not None, texts
    assert found.tobytes() == right(numbers).tobytes()


DIGITS = st.text("0123456789", min_size=1, max_size=9)
WHOLE = st.just("0") | st.from_regex(r"[1-9][0-9]{0,8}", fullmatch=True)
PLAIN = st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), WHOLE, DIGITS) | WHOLE
FP32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(PLAIN, min_size=1, max_size=40), st.sampled_from([",", ", ", " ,", ",\n  "]))
def test_plain_numbers_are_read(texts: list[str], separator: str) -> None:
    assert_read(texts, separator)


@given(st.lists(FP32.filter(lambda value: value == 0 or abs(value) > 1e-40), min_size=1, max_size=40))
def test_numbers_as_python_writes_them_are_read(values: list[float]) -> None:
    assert_read([repr(value) for value in values])


@given(st.lists(FP32, min_size=1, max_size=20))
def test_numbers_as_numpy_writes_them_are_read_or_left(values: list[float]) -> None:
    numbers = FILLING + ", ".join(str(np.float32(value)) for value in values)
    found = read(numbers, 13 + len(values))
    assert found is None or found.tobytes() == right(numbers).tobytes()


@given(st.text("0123456789.eE+-, \n", max_size=80), st.integers(0, 70))
def test_whatever_is_there_is_read_right_or_left(text: str, shift: int) -> None:
    numbers = FILLING + " " * shift + text
    count = 14 + text.count(",")
    found = read(numbers, count)
    try:
        wanted = right(numbers)
    except orjson.JSONDecodeError:
        wanted = None
    if wanted is None:
        assert found is None
    elif found is not None:
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("shift", range(66))
def test_numbers_are_read_wherever_blocks_of_64_bytes_meet(shift: int) -> None:
    rng = random.Random(shift)
    texts = [f"{rng.uniform(-300, 300):.{rng.choice([1, 4, 7, 12, 16])}f}" for _ in range(shift, shift + 90)]
    assert_read(["7" * (1 + shift % 8)] * (shift // 8) + texts, separator=",")


@pytest.mark.parametrize(
    "text",
    [
        "01.5", "-01", "00", "1.", ".5", "-", "+1.5", "--1", "1.5.2", "1 2", "1e", "1e+", "0x1", "1_0", "NaN", "null",
        "true", "Infinity", '"1"', "[1]", "1.5e5.5", "", "- 1",
        "1\x000", "1.0\xa0", "1,,2",
    ],
)  # fmt: skip
def test_what_is_no_number_of_json_is_left(text: str) -> None:
    for numbers in (FILLING + text, FILLING + text + ", 0.5", text + ", " + FILLING + "0.5"):
        assert read(numbers, numbers.count(",") + 1) is None


@pytest.mark.parametrize(
    "text", ["3.5e38", "1e300", "-4e38", "1e999", "123456789012345678901234567890", str(2**64), f"{2**65}.0"]
)
def test_what_is_beyond_fp32_or_too_long_is_left(text: str) -> None:
    assert read(FILLING + text, 14) is None


@given(st.integers(0, 2**23 - 2), st.integers(110, 140))
def test_a_number_in_the_middle_of_two_is_rounded_right_or_left(fraction: int, exponent: int) -> None:
    lower, upper = (
        struct.unpack("<f", struct.pack("<I", exponent << 23 | bits))[0] for bits in (fraction, fraction + 1)
    )
    numbers = FILLING + f"{(lower + upper) / 2:.25f}".rstrip("0") + f", {lower!r}, {upper!r}"
    found = read(numbers, 16)
    assert found is None or found.tobytes() == right(numbers).tobytes()


@pytest.mark.parametrize("count", [12, 13, 15, 100])
def test_another_count_than_there_are_is_left(count: int) -> None:
    assert read(FILLING + "0.5", count) is None
    assert read(FILLING + "0.5", 14) is not None


def test_an_array_that_is_mostly_of_rare_forms_is_left_early() -> None:
    assert read(", ".join(["1.5e-3"] * 40), 40) is not None
    assert read(", ".join(["1.5e-3"] * 1000), 1000) is None


def test_short_texts_are_left() -> None:
    assert read("0.5, 0.25", 2) is None
    assert read(FILLING + "0.5", 14, before=b'{"data":[') is None


def test_an_image_is_read_to_the_last_bit() -> None:
    image = np.random.default_rng(0).standard_normal(150528, dtype="f4")
    for values in (image.tolist(), [round(value, 4) for value in image.tolist()], np.arange(150528).tolist()):
        numbers = json.dumps(values)[1:-1]
        found = read(numbers, len(values))
        assert found is not None
        assert found.tobytes() == right(numbers).tobytes()
