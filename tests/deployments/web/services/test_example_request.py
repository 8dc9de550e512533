"""The curl line that a page offers."""

import json
import shlex
from typing import Any

import pytest

from deployments.web.services.example_request import curl_line

URL = "http://127.0.0.1:8090/serving/default/digits/v2/models/digits"


def tensor(datatype: str, *shape: int, name: str = "x") -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(shape)}


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        pytest.param(
            [tensor("FP32", -1, 4)],
            [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [0, 0, 0, 0]}],
            id="an open batch dimension becomes one row",
        ),
        pytest.param(
            [tensor("BYTES", -1, 1, name="text"), tensor("BOOL", 2, name="flags")],
            [
                {"name": "text", "shape": [1, 1], "datatype": "BYTES", "data": [""]},
                {"name": "flags", "shape": [2], "datatype": "BOOL", "data": [False, False]},
            ],
            id="each datatype gets a value that JSON has for it",
        ),
        pytest.param(
            [tensor("INT64", 1, name="it's")],
            [{"name": "it's", "shape": [1], "datatype": "INT64", "data": [0]}],
            id="a quote in a name survives the shell",
        ),
    ],
)
def test_a_shell_reads_the_line_as_an_inference(inputs: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    words = shlex.split(curl_line(URL, inputs))

    assert words[:3] == ["curl", f"{URL}/infer", "-d"]
    assert json.loads(words[3]) == {"inputs": expected}


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param([], id="without a signature"),
        pytest.param([tensor("FP32", -1, 3, 224, 224)], id="with an image too large to paste"),
    ],
)
def test_else_it_asks_for_the_metadata(inputs: list[dict[str, Any]]) -> None:
    assert curl_line(URL, inputs) == f"curl {URL}"


def test_a_guarded_service_is_called_with_a_key_from_the_environment() -> None:
    line = curl_line(URL, [tensor("FP32", 1)], is_guarded=True)
    assert shlex.split(line)[:4] == ["curl", "-H", "Authorization: Bearer $FAIRLEAD_KEY", f"{URL}/infer"]


def test_a_self_made_certificate_is_trusted_by_its_authority() -> None:
    line = curl_line(URL, [tensor("FP32", 1)], is_guarded=True, authority="/home/a b/ca.crt")
    assert shlex.split(line)[:4] == ["curl", "--cacert", "/home/a b/ca.crt", "-H"]
