"""Pictures as the values of tensors."""

import base64

import numpy as np
import pytest

from common.errors import InvalidInput
from deployments.web.try_page.pictures import PictureInput, picture_input, values_of
from registry.domain.signature import Tensor


@pytest.mark.parametrize(
    ("shape", "datatype", "axes", "size"),
    [
        pytest.param((-1, 3, 224, 200), "FP32", "NCHW", (224, 200), id="channels first"),
        pytest.param((1, 224, 200, 3), "FP32", "NHWC", (224, 200), id="channels last"),
        pytest.param((1, 28, 28), "UINT8", "CHW", (28, 28), id="one channel and no rows"),
        pytest.param((32, 32, 3), "FP16", "HWC", (32, 32), id="no rows"),
        pytest.param((-1, 28, 28), "FP32", "NHW", (28, 28), id="no channels"),
        pytest.param((-1, 3, -1, -1), "FP32", "NCHW", (None, None), id="any size"),
        pytest.param((-1, 4), "FP32", None, None, id="rows of numbers"),
        pytest.param((-1, 128, 64), "FP32", None, None, id="a series of vectors"),
        pytest.param((-1, 3, 224, 224), "BYTES", None, None, id="texts"),
        pytest.param((8, 3, 224, 224), "FP32", None, None, id="rows of a fixed number"),
        pytest.param((-1, 3, 4, 4), "FP32", None, None, id="too small for a picture"),
    ],
)
def test_inputs_for_pictures_are_known_by_their_shape(
    shape: tuple[int, ...], datatype: str, axes: str | None, size: tuple[int | None, int | None] | None
) -> None:
    found = picture_input(Tensor("x", datatype, shape))
    assert (found and found.axes) == axes
    assert (found and (found.height, found.width)) == size


def picture(shape: tuple[int, ...], datatype: str = "FP32") -> PictureInput:
    found = picture_input(Tensor("x", datatype, shape))
    assert found is not None
    return found


# Two rows of three pixels would be too small for a picture, so 8 by 9.
RGB = np.arange(8 * 9 * 3, dtype=np.uint8).reshape(8, 9, 3)
PIXELS = base64.b64encode(RGB.tobytes()).decode()


def values(shape: tuple[int, ...], scale: str, datatype: str = "FP32") -> np.ndarray:
    found_shape, found = values_of(PIXELS, "9x8", scale, picture(shape, datatype), datatype)
    return np.array(found).reshape(found_shape)


def test_channels_go_where_the_shape_has_them() -> None:
    last = values((-1, 8, 9, 3), "bytes")
    assert np.array_equal(last, RGB[np.newaxis])
    assert np.array_equal(values((-1, 3, 8, 9), "bytes"), last.transpose(0, 3, 1, 2))
    assert np.array_equal(values((3, 8, 9), "bytes"), last[0].transpose(2, 0, 1))


def test_values_are_scaled_as_is_said() -> None:
    unit = values((-1, 8, 9, 3), "unit")
    assert np.allclose(unit, RGB / 255, atol=1e-6)
    normal = values((-1, 8, 9, 3), "imagenet")
    assert np.allclose(normal * [0.229, 0.224, 0.225] + [0.485, 0.456, 0.406], unit, atol=2e-6)
    assert values((-1, 8, 9, 3), "bytes", "UINT8").dtype.kind == "i"


def test_grey_is_as_bright_as_the_colours() -> None:
    grey = values((-1, 1, 8, 9), "bytes")
    assert grey.shape == (1, 1, 8, 9)
    assert np.allclose(grey[0, 0], RGB @ np.array([0.299, 0.587, 0.114]), atol=1e-6)


@pytest.mark.parametrize(
    ("pixels", "size", "scale", "told"),
    [
        pytest.param("!!", "9x8", "unit", "no base64", id="no base64"),
        pytest.param(PIXELS[:-4], "9x8", "unit", "72 pixels|have 216", id="too few bytes"),
        pytest.param(PIXELS, "8x9", "unit", "expected 9 by 8", id="another size"),
        pytest.param(PIXELS, "-9x8", "unit", "expected WIDTHxHEIGHT", id="no size"),
        pytest.param(PIXELS, "9x8", "log", "expected unit, bytes, imagenet", id="no scale"),
    ],
)
def test_what_the_page_would_not_send_is_refused(pixels: str, size: str, scale: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        values_of(pixels, size, scale, picture((-1, 8, 9, 3)), "FP32")


def test_a_picture_of_any_size_has_a_limit() -> None:
    with pytest.raises(InvalidInput, match="at most 1024"):
        values_of(PIXELS, "2000x1", "unit", picture((-1, 3, -1, -1)), "FP32")
