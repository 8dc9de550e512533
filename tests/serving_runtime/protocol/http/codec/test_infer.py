"""The infer codec over HTTP: what clients may send, and that nothing they send breaks it."""

import contextlib
import json
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.errors import InvalidArgument, ServingError, Unsupported
from serving_runtime.common.request import InferResponse, Tensor
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.memory.shared_memory import SharedMemory
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.codec import infer_head
from serving_runtime.protocol.http.codec.infer import InferCodec
from serving_runtime.protocol.http.codec.infer_head import head_of
from serving_runtime.protocol.http.codec.response_head import AnswerForm
from serving_runtime.protocol.http.wire.message import Request, Response

X = {"name": "x", "datatype": "FP32", "shape": [2]}


def binary(size: int, **extra: object) -> dict[str, object]:
    return {**X, "parameters": {"binary_data_size": size}, **extra}


def codec_of() -> InferCodec:
    return InferCodec("m", "1", Engine([], LoadSettings(), shared_memory=SharedMemory(allowed=False)))


def encode(response: InferResponse, form: AnswerForm) -> Response:
    return codec_of().encode(response, form)


def decode_bytes(body: bytes, json_length: int | None, *, offset: int = 0, codec: InferCodec | None = None):
    request = Request(b"POST", b"/", b"\0" * offset + body, offset, json_length)
    return (codec or codec_of()).decode(request)


def decode(content: object, tail: bytes = b"", *, offset: int = 0, json_length: int | None = -1):
    head = content if isinstance(content, bytes) else json.dumps(content).encode()
    return decode_bytes(head + tail, len(head) if json_length == -1 else json_length, offset=offset)


@pytest.mark.feature("E1")
def test_json_and_binary_inputs_in_one_request() -> None:
    content = {
        "id": "42",
        "parameters": {"timeout": 5, "binary_data_output": True},
        "inputs": [{**X, "data": [1, 2]}, {**binary(8), "name": "y"}],
        "outputs": [{"name": "a"}, {"name": "b", "parameters": {"binary_data": False}}],
    }
    request, form = decode(content, np.array([3, 4], "f4").tobytes(), offset=5)
    assert (request.model_name, request.model_version, request.id) == ("m", "1", "42")
    assert [(tensor.name, tensor.array.tolist()) for tensor in request.inputs] == [("x", [1, 2]), ("y", [3, 4])]
    assert request.outputs == ("a", "b")
    assert request.parameters["timeout"] == 5
    assert form.outputs.binary_by_name == {"b": False}
    assert form.outputs.binary


@pytest.mark.parametrize(
    ("content", "tail", "sentence"),
    [
        pytest.param(b"[]", b"", "must be a JSON object", id="an array"),
        pytest.param(b'{"inputs"', b"", "not valid JSON", id="half an object"),
        pytest.param(b'{"inputs":[{"data":[NaN]}]}', b"", "not valid JSON", id="NaN"),
        pytest.param(b"[" * 60_000, b"", "not valid JSON", id="deep JSON"),
        pytest.param(b'{"id":"\xff"}', b"", "not valid JSON", id="bytes that are no text"),
        pytest.param({}, b"", "an array 'inputs'", id="no inputs"),
        pytest.param({"inputs": []}, b"", "an array 'inputs'", id="empty inputs"),
        pytest.param({"inputs": [1]}, b"", "must be an object", id="an input that is no object"),
        pytest.param({"inputs": [{}]}, b"", "string 'name'", id="an input without a name"),
        pytest.param({"inputs": [{"name": "x", "datatype": "FP32"}]}, b"", "an array 'shape'", id="no shape"),
        pytest.param({"inputs": [X]}, b"", "neither data nor", id="no data"),
        pytest.param({"inputs": [binary(8, data=[1])]}, bytes(8), "both data and", id="data twice"),
        pytest.param({"inputs": [binary(9)]}, bytes(8), "only 8 bytes are left", id="a size beyond the body"),
        pytest.param({"inputs": [binary(-8)]}, bytes(8), "integer >= 0", id="a negative size"),
        pytest.param({"inputs": [binary(4)]}, bytes(4), "unexpected byte size 4, expecting 8", id="a size that lies"),
        pytest.param({"inputs": [binary(8)]}, bytes(9), "1 bytes after its last tensor", id="bytes left over"),
        pytest.param({"inputs": [{**X, "data": [1, 2]}], "id": 7}, b"", "'id' must be a string", id="a number as id"),
        pytest.param(
            {"inputs": [{**X, "data": [1, 2]}], "outputs": {}}, b"", "'outputs' must be", id="no outputs array"
        ),
        pytest.param(
            {"inputs": [{**X, "data": [1, 2]}], "outputs": [{}]}, b"", "string 'name'", id="a nameless output"
        ),
        pytest.param(
            {"inputs": [{**X, "data": [1, 2]}], "parameters": {"binary_data_output": 1}},
            b"",
            "must be true or false",
            id="a number for a flag",
        ),
    ],
)
def test_wrong_requests_are_refused_in_words(content: object, tail: bytes, sentence: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        decode(content, tail)
    assert sentence in str(caught.value)


def test_an_empty_body_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="must begin with a JSON object"):
        decode_bytes(b"", None)


def test_a_json_length_beyond_the_body_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="Inference-Header-Content-Length is 99, but the request body has 2"):
        decode(b"{}", json_length=99)


def test_a_flood_of_empty_arrays_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(InvalidArgument, match="more than 1000000 arrays"):
        infer_head.parse(b'{"inputs":[' + b"[]," * 1_000_001 + b"[]]}")


REGION = {"shared_memory_region": "r", "shared_memory_byte_size": 8}


def asks(**parameters: object) -> dict[str, object]:
    return {"inputs": [{**X, "data": [1, 2]}], "outputs": [{"name": "y", "parameters": parameters}]}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(
            {"inputs": [{**X, "parameters": {"shared_memory_region": "r"}}]},
            "'shared_memory_byte_size' is missing",
            id="a region without a size",
        ),
        pytest.param(
            {"inputs": [{**X, "parameters": {"shared_memory_byte_size": 8}}]},
            "'shared_memory_region' is missing",
            id="a size without a region",
        ),
        pytest.param(
            {"inputs": [{**X, "parameters": {**REGION, "shared_memory_offset": -1}}]},
            "must be an integer >= 0",
            id="a negative offset",
        ),
        pytest.param(
            {"inputs": [{**X, "parameters": REGION, "data": [1, 2]}]}, "both data and shared memory", id="data twice"
        ),
        pytest.param(asks(**REGION, binary_data=True), "excludes binary_data", id="a region and binary"),
        pytest.param(asks(**REGION, classification=1), "excludes binary_data", id="a region and classes"),
        pytest.param(asks(classification=-1), "'classification' must be", id="less than no classes"),
        pytest.param(asks(classification="all"), "'classification' must be", id="classes in words"),
        pytest.param(
            {"inputs": [{**X, "data": [1, 2]}], "parameters": {"triton_x": 1}}, "reserved name", id="a reserved name"
        ),
        pytest.param(
            {"inputs": [{**X, "data": [1, 2]}], "parameters": {"headers": "x"}}, "reserved name", id="headers"
        ),
        pytest.param(
            {"inputs": [{**X, "data": [1, 2]}], "parameters": {"mine": [1]}}, "a string, a number", id="a list"
        ),
        pytest.param(
            {"inputs": [{**X, "data": [1, 2]}], "parameters": [1]}, "must be an object", id="a list of parameters"
        ),
    ],
)
def test_wrong_parameters_are_refused_in_words(content: object, sentence: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        decode(content)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "content", [{"inputs": [{**X, "parameters": REGION}]}, asks(**REGION)], ids=["an input", "an output"]
)
def test_shared_memory_is_refused_where_it_is_not_allowed(content: object) -> None:
    with pytest.raises(Unsupported, match="--allow-client-shm=true"):
        decode(content)


@pytest.mark.feature("E16")
def test_custom_parameters_come_as_they_are() -> None:
    mine = {"text": "x", "number": 1, "float": 0.5, "flag": True, "timeout": 7}
    request, _ = decode({"inputs": [{**X, "data": [1, 2]}], "parameters": mine})
    assert request.parameters == mine


@pytest.mark.feature("E16")
def test_a_models_own_parameters_are_in_the_answer() -> None:
    form = decode({"inputs": [binary(8)], "parameters": {"binary_data_output": True}}, bytes(8))[1]
    plain = response(("a", "FP32", np.ones((1, 2), "f4")))
    for parameters in ({}, {"token": "t", "left": 3}, {}):
        content, _ = parted(encode(plain._replace(parameters=parameters), form))
        assert content.get("parameters", {}) == parameters


Json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=4) | st.sampled_from(["FP32", "BYTES"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "inputs",
                    "outputs",
                    "name",
                    "shape",
                    "datatype",
                    "data",
                    "parameters",
                    "binary_data_size",
                    "id",
                    "shared_memory_region",
                    "shared_memory_byte_size",
                    "classification",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(Json, st.binary(max_size=20), st.none() | st.integers(0, 80))
def test_whatever_comes_is_taken_or_refused(content: object, tail: bytes, json_length: int | None) -> None:
    with contextlib.suppress(ServingError):
        decode(content, tail, json_length=json_length)


@given(st.binary(max_size=200), st.none() | st.integers(0, 220))
def test_even_noise_is_taken_or_refused(body: bytes, json_length: int | None) -> None:
    with pytest.raises(ServingError):
        decode_bytes(body, json_length)


def response(*outputs: tuple[str, str, Array], request_id: str = "") -> InferResponse:
    tensors = tuple(Tensor(name, DATATYPES[datatype], array) for name, datatype, array in outputs)
    return InferResponse("m", "3", tensors, request_id)


def parted(answer: Response) -> tuple[dict[str, Any], bytes]:
    whole = b"".join(bytes(chunk) for chunk in answer.chunks)
    assert len(whole) == answer.length
    marker = b"Inference-Header-Content-Length: "
    if marker not in answer.headers:
        return orjson.loads(whole), b""
    length = int(answer.headers.split(marker)[1].split(b"\r\n")[0])
    return orjson.loads(whole[:length]), whole[length:]


def asking(outputs: list[dict[str, object]] | None = None, *, binary: bool = False) -> AnswerForm:
    """Return the form of the answers to a request that asks for outputs in this form."""
    own = {"binary_data_output": binary}
    return AnswerForm(head_of({"inputs": [{**X, "data": [1, 2]}], "outputs": outputs, "parameters": own}).forms)


@pytest.mark.feature("E2")
def test_outputs_come_as_asked_for_each() -> None:
    outputs = ("a", "FP32", np.array([[1, 2]], "f4")), ("b", "BYTES", np.array([[b"xy"]], dtype=object))
    head = asking([{"name": "a"}, {"name": "b", "parameters": {"binary_data": True}}])
    content, tail = parted(encode(response(*outputs, request_id="7"), head))
    assert content == {
        "model_name": "m",
        "model_version": "3",
        "id": "7",
        "outputs": [
            {"name": "a", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]},
            {"name": "b", "datatype": "BYTES", "shape": [1, 1], "parameters": {"binary_data_size": 6}},
        ],
    }
    assert tail == b"\x02\x00\x00\x00xy"


def test_json_keeps_the_shortest_digits_that_read_back_the_same_float() -> None:
    answer = encode(response(("a", "FP32", np.array([0.1], "f4"))), asking())
    assert b'"data":[0.1]' in bytes(answer.chunks[0])


def test_a_view_that_is_not_contiguous_is_written_in_row_major_order() -> None:
    array = np.arange(6, dtype="f4").reshape(2, 3).T
    _, tail = parted(encode(response(("a", "FP32", array)), asking(binary=True)))
    assert np.frombuffer(tail, "f4").tolist() == [0, 3, 1, 4, 2, 5]


def test_a_head_that_comes_again_gives_the_same_with_other_data() -> None:
    codec = codec_of()
    head = json.dumps({"inputs": [binary(8)]}).encode()
    seen = []
    for values in ([1, 2], [3, 4]):
        request, kept = decode_bytes(head + np.array(values, "f4").tobytes(), len(head), codec=codec)
        assert request.inputs[0].array.tolist() == values
        seen.append(kept)
    assert seen[0] is seen[1]
    with pytest.raises(InvalidArgument, match="only 7 bytes are left"):
        decode_bytes(head + bytes(7), len(head), codec=codec)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"inputs": [binary(8)], "id": "1"}, id="one with an id"),
        pytest.param({"inputs": [binary(8)], "parameters": {"x": "y" * 2000}}, id="a long one"),
    ],
)
def test_a_head_that_is_unlikely_to_come_again_is_not_kept(content: object) -> None:
    assert decode(content, bytes(8))[1].heads is None


def test_kept_answers_follow_version_shapes_and_values() -> None:
    form = decode({"inputs": [binary(8)], "parameters": {"binary_data_output": True}}, bytes(8))[1]
    assert form.heads is not None
    for version, rows, text in (("1", 1, b"a"), ("2", 1, b"bc"), ("1", 2, b"d"), ("1", 1, b"efg"), ("1", 2, b"")):
        numbers, strings = np.full((rows, 2), len(text), "f4"), np.full((rows, 1), text, dtype=object)
        for outputs in ((("n", "FP32", numbers),), (("n", "FP32", numbers), ("s", "BYTES", strings))):
            given = response(*outputs)._replace(model_version=version)
            content, tail = parted(encode(given, form))
            assert content["model_version"] == version
            assert content["outputs"][0]["shape"] == [rows, 2]
            assert tail[: numbers.nbytes] == numbers.tobytes()
            if len(outputs) == 2:
                assert tail[numbers.nbytes :] == (len(text).to_bytes(4, "little") + text) * rows
    assert len(form.heads) == 3
