"""Made-up requests."""

import json
from typing import Any

import pytest

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.tuning.requests import infer_call, shape_of

CONFIG: dict[str, Any] = {
    "name": "m",
    "max_batch_size": 4,
    "input": [
        {"name": "tokens", "data_type": "TYPE_INT64", "dims": [-1]},
        {"name": "text", "data_type": "TYPE_STRING", "dims": [1]},
        {"name": "mask", "data_type": "TYPE_FP32", "dims": [2], "optional": True},
    ],
}


def sent(call: bytes) -> tuple[dict[str, Any], int]:
    """Return the JSON head, and how many bytes of tensors follow."""
    lines, _, body = call.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in lines.decode().split("\r\n")[1:])
    assert int(headers["Content-Length"]) == len(body)
    length = int(headers["Inference-Header-Content-Length"])
    return json.loads(body[:length]), len(body) - length


def test_inputs_have_the_rows_and_shapes_that_are_asked_for() -> None:
    head, size = sent(infer_call(CONFIG, {"tokens": (5,)}, rows=2))
    assert [(each["name"], each["datatype"], each["shape"]) for each in head["inputs"]] == [
        ("tokens", "INT64", [2, 5]),
        ("text", "BYTES", [2, 1]),
    ]
    assert size == 2 * 5 * 8 + 2 * (4 + len("fairlead"))


def test_variable_dimensions_are_1_and_a_model_without_batches_has_no_rows() -> None:
    head, _ = sent(infer_call({**CONFIG, "max_batch_size": 0}, {}, rows=3))
    assert [each["shape"] for each in head["inputs"]] == [[1], [1]]


def test_an_optional_input_is_sent_where_its_shape_is_given() -> None:
    head, _ = sent(infer_call(CONFIG, {"mask": (2,)}, rows=1))
    assert [each["name"] for each in head["inputs"]] == ["tokens", "text", "mask"]


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        ({"token": (5,)}, "no input 'token' to give a shape to; the model has tokens, text, mask"),
        ({"tokens": (5, 5)}, r"input 'tokens' has dims \[-1\], which \[5, 5\] does not fit"),
        ({"text": (2,)}, r"input 'text' has dims \[1\], which \[2\] does not fit"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused(shapes: dict[str, tuple[int, ...]], sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        infer_call(CONFIG, shapes, rows=1)


def test_shapes_as_the_command_line_writes_them() -> None:
    assert shape_of("a:b:3x224x224") == ("a:b", (3, 224, 224))
    for wrong in ("tokens", "tokens:", ":3", "tokens:0", "tokens:3x", "tokens:-1"):
        with pytest.raises(ValueError, match="is not INPUT:DIMS"):
            shape_of(wrong)
