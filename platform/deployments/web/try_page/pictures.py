"""Picture inputs: recognised by their shape, with pixels converted to tensor values. Pure.

Axes: N rows of the batch, C channels, H height, W width.
"""

import base64
import binascii
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import InvalidInput
from common.tensors import DTYPES
from registry.domain.signature import Tensor

OPEN_SIDE = 224
MOST_SIDE = 1024
_LEAST_SIDE = 8
_PLACES = 6  # decimals of the numbers sent; more than a picture has, and half as long as all of them
_LUMA = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601
_MEAN = np.array([0.485, 0.456, 0.406])  # of ImageNet's training pictures, as in torchvision's models
_STD = np.array([0.229, 0.224, 0.225])


class Scale(StrEnum):
    """The scaling of a channel's value from 0 to 255."""

    UNIT = "unit"
    BYTES = "bytes"
    IMAGENET = "imagenet"


@dataclass(frozen=True, slots=True)
class PictureInput:
    """The format of a tensor that holds a picture.

    Attributes:
        axes: such as NCHW or HWC.
        height, width: in pixels; None where any will do.
        scales: those that fit, the likeliest first.
    """

    axes: str
    channels: int
    height: int | None
    width: int | None
    scales: tuple[Scale, ...]

    @property
    def is_open(self) -> bool:
        """Return whether the sender of a picture chooses its size."""
        return self.height is None or self.width is None


def picture_input(tensor: Tensor) -> PictureInput | None:
    """Return the picture format of the tensor; None where it does not look like one."""
    kind = DTYPES[tensor.datatype].kind
    if kind not in "fiu":
        return None
    for axes in ("NCHW", "NHWC", "CHW", "HWC", "NHW"):
        if len(axes) != len(tensor.shape):
            continue
        sizes = dict(zip(axes, tensor.shape, strict=True))
        channels = sizes.get("C", 1)
        sides = sizes["H"], sizes["W"]
        if channels not in (1, 3) or sizes.get("N", 1) not in (1, -1) or not all(map(_is_side, sides)):
            continue
        if axes == "NHW" and (-1 in sides or sides[0] != sides[1]):
            continue  # more often a series of vectors
        height, width = (None if side == -1 else side for side in sides)
        return PictureInput(axes, channels, height, width, _scales(kind, channels))
    return None


def values_of(pixels: str, size: str, scale: str, picture: PictureInput, datatype: str) -> tuple[list[int], list[Any]]:
    """Return the tensor's shape and its values in row-major order.

    Args:
        pixels: base64 of bytes [height, width, red green blue].
        size: `WIDTHxHEIGHT`.

    Raises:
        InvalidInput: they are not in the page's format, or do not fit the tensor.
    """
    width, height = _size(size, picture)
    if scale not in picture.scales:
        raise InvalidInput(f"scale is {scale[:20]!r}; expected {', '.join(picture.scales)}", field="scale")
    try:
        content = base64.b64decode(pixels, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("the picture's pixels are no base64; choose the picture again", field="pixels") from error
    if len(content) != width * height * 3:
        raise InvalidInput(
            f"the picture has {len(content)} bytes, but {width} by {height} pixels have {width * height * 3}",
            field="pixels",
        )
    rgb: NDArray[Any] = np.frombuffer(content, np.uint8).reshape(height, width, 3).astype(np.float64)
    values = _scaled(rgb if picture.channels == 3 else (rgb @ _LUMA)[..., np.newaxis], Scale(scale))
    values = np.round(values, _PLACES) if DTYPES[datatype].kind == "f" else np.rint(values).astype(np.int64)
    return _laid_out(values, picture.axes)


def _laid_out(values: NDArray[Any], axes: str) -> tuple[list[int], list[Any]]:
    """Return shape and values of [height, width, channels] in the order of `axes`."""
    order = axes.replace("N", "")
    values = values[..., 0] if order == "HW" else values.transpose(["HWC".index(axis) for axis in order])
    shape = [1, *values.shape] if "N" in axes else list(values.shape)
    return shape, values.ravel().tolist()


def _scaled(values: NDArray[Any], scale: Scale) -> NDArray[Any]:
    if scale is Scale.BYTES:
        return values
    unit: NDArray[Any] = values / 255
    return (unit - _MEAN) / _STD if scale is Scale.IMAGENET else unit


def _scales(kind: str, channels: int) -> tuple[Scale, ...]:
    if kind != "f":
        return (Scale.BYTES,)
    return (Scale.UNIT, Scale.BYTES, Scale.IMAGENET) if channels == 3 else (Scale.UNIT, Scale.BYTES)


def _size(size: str, picture: PictureInput) -> tuple[int, int]:
    width, _, height = size.partition("x")
    if not all(side.isascii() and side.isdecimal() and len(side) < 5 for side in (width, height)):
        raise InvalidInput(f"the picture's size is {size[:20]!r}; expected WIDTHxHEIGHT", field="size")
    for side, needed in ((int(width), picture.width), (int(height), picture.height)):
        if side != needed and (needed is not None or not 1 <= side <= MOST_SIDE):
            raise InvalidInput(
                f"the picture is {size}; expected {picture.width or 'any'} by {picture.height or 'any'} pixels, "
                f"at most {MOST_SIDE}",
                field="size",
            )
    return int(width), int(height)


def _is_side(size: int) -> bool:
    return size == -1 or size >= _LEAST_SIDE
