"""The request that is made of what somebody put into a model's form."""

from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.web.try_page import fields_of, request_of
from integrations.v2 import tensors
from registry.domain.signature import Signature, Tensor


def made(tensor: Tensor, **said: str) -> dict[str, Any]:
    """Return the only input of the request; V2 must have such a one."""
    request = request_of(fields_of(Signature((tensor,), ())), said)
    tensors.inputs_of(request)
    (entry,) = request["inputs"]
    return dict(entry)


ROWS = Tensor("x", "FP32", (-1, 4))


@pytest.mark.parametrize(
    ("tensor", "data", "shape"),
    [
        pytest.param(ROWS, "[[1, 2, 3, 4], [5, 6, 7, 8]]", [2, 4], id="nested lists have the shape"),
        pytest.param(ROWS, "[1, 2, 3, 4, 5, 6, 7, 8]", [2, 4], id="a flat list fills the open dimension"),
        pytest.param(ROWS, "[[1, 2, 3]]", [1, 3], id="a wrong row is left to the runtime to refuse"),
        pytest.param(Tensor("x", "INT64", (-1,)), "[7, 8]", [2], id="one dimension"),
        pytest.param(Tensor("x", "INT64", (1,)), "7", [1], id="a number alone"),
        pytest.param(Tensor("x", "BYTES", (-1, -1)), '["a", "b"]', [1, 2], id="a flat list is one row"),
        pytest.param(Tensor("x", "BOOL", (2, 1)), "[true, false]", [2, 1], id="nothing is open"),
    ],
)
def test_the_shape_is_that_of_the_values(tensor: Tensor, data: str, shape: list[int]) -> None:
    assert made(tensor, **{"data-0": data})["shape"] == shape


@pytest.mark.parametrize(
    ("tensor", "data", "told"),
    [
        pytest.param(ROWS, "[1, 2", "that is not JSON", id="no JSON"),
        pytest.param(ROWS, "[NaN, 1, 2, 3]", "NaN is not a number", id="not a number"),
        pytest.param(ROWS, '{"x": 1}', "that is an object", id="an object"),
        pytest.param(ROWS, "[1, 2, 3]", "do not fill the shape", id="too few"),
        pytest.param(Tensor("x", "FP32", (2, -1, -1)), "[1, 2]", "nest it", id="a shape that a flat list cannot tell"),
        pytest.param(ROWS, '[["a", 1, 2, 3]]', "no FP32", id="text for numbers"),
        pytest.param(ROWS, "[[1, 2, 3, 4], [5]]", "8 elements", id="rows of different length"),
        pytest.param(ROWS, "[" * 100_000, "not JSON|more than", id="very deep"),
        pytest.param(Tensor("x", "FP32", (4000, 4000)), "", "at most", id="too many zeros"),
    ],
)
def test_what_is_wrong_is_told(tensor: Tensor, data: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        made(tensor, **{"data-0": data})


@pytest.mark.parametrize("datatype", ["BOOL", "UINT8", "INT64", "FP16", "BF16", "FP32", "FP64", "BYTES"])
def test_the_example_is_valid(datatype: str) -> None:
    tensor = Tensor("x", datatype, (-1, 3))
    (field,) = fields_of(Signature((tensor,), ()))
    assert made(tensor, **{"data-0": field.example}) == {"name": "x", "datatype": datatype} | made(tensor)


def test_what_may_be_left_out_is_left_out() -> None:
    signature = Signature((ROWS, Tensor("mask", "FP32", (-1, 4), optional=True)), ())
    request = request_of(fields_of(signature), {"data-0": "[[1, 2, 3, 4]]", "data-1": " "})
    assert [entry["name"] for entry in request["inputs"]] == ["x"]


def test_a_long_example_is_not_shown_and_zeros_are_sent() -> None:
    tensor = Tensor("x", "FP32", (-1, 100_000))
    (field,) = fields_of(Signature((tensor,), ()))
    assert field.example == ""
    assert made(tensor)["data"] == [0.0] * 100_000
