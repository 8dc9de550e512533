"""What is written as JSON in pieces is what would be written at one go, and no piece holds more than its share."""

from typing import Any

import numpy as np
import pytest

from serving_runtime.protocol.http.codec import json_writer

LONG = np.arange(100_000, dtype="f4")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"a": LONG, "b": {}, 'é"': [], "c": 1}, id="flat numbers in an object"),
        pytest.param(LONG.reshape(1, 1, -1), id="one row"),
        pytest.param(LONG.reshape(-1, 2), id="many rows"),
        pytest.param(LONG.reshape(2, 5, -1), id="rows of many"),
        pytest.param(np.empty((100_000, 0), "f4"), id="rows of none"),
        pytest.param(["text"] * 100_000, id="strings"),
        pytest.param([{"x": LONG[:3], "y": "s" * (n % 40)} for n in range(30_000)], id="rows of V1"),
        pytest.param([[1], LONG, "s" * 2_000_000, LONG[:2], [LONG, LONG], None], id="large and small ones"),
    ],
)
def test_pieces_make_the_whole(content: Any) -> None:
    found = list(json_writer.pieces(content))
    assert b"".join(found) == json_writer.whole(content)


def test_a_piece_is_short() -> None:
    assert max(map(len, json_writer.pieces({"a": LONG.repeat(10)}))) < 64 * 1024 * 10
