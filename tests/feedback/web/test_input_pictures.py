"""Image-like tensors become PNG pictures, and others none."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from common.tensors import Tensor
from feedback.web.input_pictures import picture_of


def drawn(values: NDArray[Any], datatype: str = "FP32") -> NDArray[np.uint8]:
    """Return the pixels of a tensor's picture, [height, width, channels], with every chunk's checksum looked at."""
    address = picture_of("pixels", Tensor(datatype, values))
    kind, _, content = address.partition(",")
    assert kind == "data:image/png;base64"
    rest = base64.b64decode(content)
    assert rest[:8] == b"\x89PNG\r\n\x1a\n"
    rest, chunks = rest[8:], {}
    while rest:
        length = struct.unpack(">I", rest[:4])[0]
        assert struct.unpack(">I", rest[8 + length : 12 + length])[0] == zlib.crc32(rest[4 : 8 + length])
        chunks[rest[4:8]], rest = rest[8 : 8 + length], rest[12 + length :]
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colours, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    channels = {0: 1, 2: 3}[colours]
    assert depth == 8
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert not lines[:, 0].any(), "no line is filtered"
    return lines[:, 1:].reshape(height, width, channels)


@pytest.mark.parametrize(
    ("shape", "drawn_shape"),
    [
        pytest.param((1, 64), (8, 8, 1), id="a flat square"),
        pytest.param((3, 784), (28, 28, 1), id="the first of several rows"),
        pytest.param((1, 1, 28, 28), (28, 28, 1), id="NCHW of one channel"),
        pytest.param((2, 3, 12, 20), (12, 20, 3), id="NCHW of three channels"),
        pytest.param((1, 12, 20, 3), (12, 20, 3), id="NHWC"),
        pytest.param((3, 12, 20), (12, 20, 3), id="CHW"),
        pytest.param((1, 16, 16), (16, 16, 1), id="NHW"),
    ],
)
def test_pictures_have_the_size_of_their_axes(shape: tuple[int, ...], drawn_shape: tuple[int, ...]) -> None:
    values = np.linspace(0, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    assert drawn(values).shape == drawn_shape


@pytest.mark.parametrize(
    ("values", "datatype"),
    [
        pytest.param(np.zeros((1, 65), np.float32), "FP32", id="no square"),
        pytest.param(np.zeros((1, 49), np.float32), "FP32", id="too small a square"),
        pytest.param(np.full((1, 64), -1, np.float32), "FP32", id="a vector with negative numbers"),
        pytest.param(np.zeros((0, 64), np.float32), "FP32", id="no row"),
        pytest.param(np.array([b"text"] * 64, object).reshape(1, 64), "BYTES", id="texts"),
        pytest.param(np.zeros((1, 64), np.bool_), "BOOL", id="truths"),
        pytest.param(np.zeros((1100, 1100, 1), np.uint8), "UINT8", id="too large"),
    ],
)
def test_other_tensors_are_no_pictures(values: NDArray[Any], datatype: str) -> None:
    assert picture_of("x", Tensor(datatype, values)) == ""


def test_values_become_shades() -> None:
    unit = np.zeros((1, 64), np.float32)
    unit[0, 1], unit[0, 2] = 0.5, 1.0
    assert drawn(unit)[0, :3, 0].tolist() == [0, 128, 255]
    as_bytes = np.zeros((1, 8, 8, 3), np.uint8)
    as_bytes[0, 0, 1] = (10, 20, 30)
    assert drawn(as_bytes, "UINT8")[0, 1].tolist() == [10, 20, 30]
    others = np.zeros((1, 64), np.float32)
    others[0, 0] = 16
    assert drawn(others)[0, 0, 0] == 255
    assert not drawn(np.full((1, 1, 8, 8), np.nan, np.float32)).any()
