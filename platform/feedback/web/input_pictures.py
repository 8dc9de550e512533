"""Kept tensors of image-like inputs as PNG pictures. Pure.

`deployments.web.try_page.pictures` decides by the shape which tensors are pictures; a flat row of a square's size is
one too, such as the 64 pixels of a digit.
"""

import base64
import struct
import zlib
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.tensors import Tensor
from deployments.web.try_page.pictures import MOST_SIDE, picture_input
from registry.domain import signature

_LEAST_SIDE = 8
_CHANNELS = {1: 0, 3: 2}
"""PNG's colour type by the number of channels (RFC 2083, 4.1.1)."""


def picture_of(name: str, tensor: Tensor) -> str:
    """Return the first row of a tensor as the `data:` address of a picture; empty where it is none."""
    pixels = _pixels(name, tensor)
    if pixels is None or max(pixels.shape[:2]) > MOST_SIDE:
        return ""
    return f"data:image/png;base64,{base64.b64encode(_png(_as_bytes(pixels))).decode()}"


def _pixels(name: str, tensor: Tensor) -> NDArray[Any] | None:
    """Return [height, width, channels] of the first row; None for no picture."""
    values = tensor.values
    if values.dtype.kind not in "fiu" or not values.size:
        return None
    rows = values[:1] if values.ndim in (2, 4) else values
    found = picture_input(signature.Tensor(name, tensor.datatype, tuple(rows.shape)))
    if found is not None:
        order = found.axes.replace("N", "")
        one = rows.reshape(rows.shape[1:]) if found.axes.startswith("N") else rows
        return one[..., np.newaxis] if order == "HW" else one.transpose([order.index(axis) for axis in "HWC"])
    side = isqrt(rows.size)
    is_flat = rows.ndim in (1, 2) and rows.shape[-1] == rows.size
    if not is_flat or side < _LEAST_SIDE or side**2 != rows.size or rows.min() < 0:
        return None
    return rows.reshape(side, side, 1)


def _as_bytes(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Return pixels from 0 to 255: bytes as they are, shares of 1 multiplied, all others from the least to the most."""
    values = np.nan_to_num(pixels.astype(np.float64), posinf=0.0, neginf=0.0)
    least, most = float(values.min()), float(values.max())
    if pixels.dtype == np.uint8:
        least, most = 0.0, 255.0
    elif least >= 0 and most <= 1:
        least, most = 0.0, 1.0
    scaled = (values - least) / (most - least) if most > least else np.zeros_like(values)
    return np.rint(scaled * 255).astype(np.uint8)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a PNG of [height, width, channels] (RFC 2083), each line unfiltered."""
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _CHANNELS[channels], 0, 0, 0)
    lines = b"".join(b"\0" + line.tobytes() for line in np.ascontiguousarray(pixels))
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
