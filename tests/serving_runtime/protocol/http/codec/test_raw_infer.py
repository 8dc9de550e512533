"""Requests that are one tensor's bytes: what the model must be for that."""

import numpy as np
import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.config.model import ModelConfig
from serving_runtime.protocol.http.codec.raw_infer import tensor

pytestmark = pytest.mark.feature("E3")


def config(text: str) -> ModelConfig:
    return ModelConfig.from_message(text_format.Parse(f'name: "m" {text}', proto.ModelConfig()))


def one(data_type: str, dims: list[int], *, batch: int = 0) -> ModelConfig:
    return config(f'max_batch_size: {batch} input {{ name: "x" data_type: {data_type} dims: {dims} }}')


@pytest.mark.parametrize(
    ("model", "body", "shape"),
    [
        pytest.param(one("TYPE_FP32", [2, 3]), bytes(24), (2, 3), id="fixed"),
        pytest.param(one("TYPE_FP32", [-1, 3]), bytes(36), (3, 3), id="one variable dimension"),
        pytest.param(one("TYPE_INT8", [4], batch=8), bytes(4), (1, 4), id="a batch of one"),
        pytest.param(one("TYPE_INT8", [2, -1], batch=8), bytes(8), (1, 2, 4), id="both"),
        pytest.param(one("TYPE_STRING", [1]), b"text", (1,), id="text"),
        pytest.param(one("TYPE_STRING", [-1], batch=2), b"text", (1, 1), id="text in a batch of one"),
    ],
)
def test_the_model_says_what_the_bytes_are(model: ModelConfig, body: bytes, shape: tuple[int, ...]) -> None:
    found = tensor(memoryview(body), model)
    assert (found.name, found.array.shape) == ("x", shape)
    if found.datatype.name == "BYTES":
        assert found.array.ravel().tolist() == [b"text"]
    else:
        assert found.array.tobytes() == body


def test_values_are_little_endian() -> None:
    body = np.array([1.5, -2], "<f4").tobytes()
    assert tensor(memoryview(body), one("TYPE_FP32", [-1])).array.tolist() == [1.5, -2]


@pytest.mark.parametrize(
    ("model", "body", "sentence"),
    [
        (one("TYPE_FP32", [2]), bytes(7), "unexpected byte size 7"),
        (one("TYPE_FP32", [-1, 2]), bytes(12), "no multiple of 8"),
        (one("TYPE_FP32", [-1, -1]), bytes(8), "2 variable dimensions"),
        (one("TYPE_STRING", [2]), b"ab", "not [1]"),
        (
            config('input { name: "a" data_type: TYPE_INT8 dims: 1 } input { name: "b" data_type: TYPE_INT8 dims: 1 }'),
            bytes(2),
            "it has 2 inputs",
        ),
    ],
)
def test_what_leaves_the_shape_open_is_refused(model: ModelConfig, body: bytes, sentence: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        tensor(memoryview(body), model)
    assert sentence in str(caught.value)
