"""Events hold exactly what was sent and answered."""

import base64
from datetime import UTC, datetime
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import Unavailable
from serving_runtime.common.request import InferRequest, InferResponse, Tensor
from serving_runtime.telemetry.tap.events import Exchange, event, size_bytes, tensor
from serving_runtime.telemetry.tap.writing import written

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
X = Tensor("x", DATATYPES["FP32"], np.array([[0.1, 2]], np.float32))
REQUEST = InferRequest("digits", "", (X,), ("y",), "7", {"priority": 1}, {"y": 2})


def told(item: Tensor) -> dict[str, Any]:
    shown: dict[str, Any] = orjson.loads(written(tensor(item)))
    return shown


def test_a_request() -> None:
    shown = event(Exchange("a7", 0, REQUEST, None, AT), "/fairlead/one")
    assert shown | {"data": None} == {
        "specversion": "1.0",
        "id": "a7:0",
        "source": "/fairlead/one",
        "type": "org.kubeflow.serving.inference.request",
        "subject": "digits",
        "time": "2026-11-21T12:00:00.000000+00:00",
        "requestid": "a7",
        "modelname": "digits",
        "datacontenttype": "application/json",
        "data": None,
    }
    assert orjson.loads(written(shown["data"])) == {
        "id": "7",
        "parameters": {"priority": 1},
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [0.1, 2.0]}],
        "outputs": [{"name": "y", "parameters": {"classification": 2}}],
    }


def test_an_answer_names_the_version_that_gave_it() -> None:
    shown = event(Exchange("a7", 1, REQUEST, InferResponse("digits", "3", (X,), "7"), AT), "/s")
    assert (shown["type"], shown["modelversion"]) == ("org.kubeflow.serving.inference.response", "3")
    assert shown["data"]["model_version"] == "3"
    assert shown["data"]["outputs"][0]["name"] == "x"


def test_a_refusal() -> None:
    shown = event(Exchange("a7", 1, REQUEST, Unavailable("Exceeds maximum queue size"), AT), "/s")
    assert shown["data"] == {"error": "Exceeds maximum queue size"}
    assert shown["errorcode"] == "UNAVAILABLE"


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_floats_are_read_back_the_same(values: list[float]) -> None:
    array = np.array(values, np.float32)
    data = told(Tensor("x", DATATYPES["FP32"], array))["data"]
    assert np.array(data, np.float32).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("datatype", "array", "content"),
    [
        pytest.param("FP16", np.array([1, 2], np.float16), np.array([1, 2], np.float16).tobytes(), id="half floats"),
        pytest.param(
            "FP32", np.array([np.nan], np.float32), np.array([np.nan], np.float32).tobytes(), id="not a number"
        ),
        pytest.param("FP64", np.array([-np.inf]), np.array([-np.inf]).tobytes(), id="infinity"),
        pytest.param("BYTES", np.array([b"\xff", b""], object), b"\x01\0\0\0\xff\0\0\0\0", id="bytes that are no text"),
    ],
)
def test_what_json_cannot_carry_is_base64_of_the_binary_form(datatype: str, array: Any, content: bytes) -> None:
    shown = told(Tensor("x", DATATYPES[datatype], array))
    assert shown["parameters"] == {"encoding": "base64"}
    assert base64.b64decode(shown["data"][0]) == content


def test_text_and_views_are_written_in_row_major_order() -> None:
    assert told(Tensor("x", DATATYPES["BYTES"], np.array([[b"a", "é".encode()]], object)))["data"] == ["a", "é"]
    turned = np.arange(4, dtype=np.int64).reshape(2, 2).T
    assert told(Tensor("x", DATATYPES["INT64"], turned))["data"] == [0, 2, 1, 3]


def test_the_size_of_an_exchange_counts_what_it_holds() -> None:
    text = Tensor("x", DATATYPES["BYTES"], np.array([b"a" * 5000], object))
    assert size_bytes(Exchange("a", 0, REQUEST._replace(inputs=(text,)), None, AT)) > 5000
    assert size_bytes(Exchange("a", 1, REQUEST, InferResponse("m", "1", (text, text)), AT)) > 10_000
    assert size_bytes(Exchange("a", 1, REQUEST, Unavailable("full"), AT)) < 5000
