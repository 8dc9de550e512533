"""gRPC messages to requests and back: raw and typed contents, and what is wrong with either."""

import contextlib
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime import proto
from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import InvalidArgument, Unsupported
from serving_runtime.common.request import InferRequest, InferResponse, Tensor
from serving_runtime.engine.memory.shared_memory import SharedMemory
from serving_runtime.protocol.grpc.codec import infer


def decode(message: Any) -> InferRequest:
    return infer.decode(message, SharedMemory(allowed=False))[0]


def message(datatype: str = "FP32", shape: tuple[int, ...] = (2,), raw: bytes | None = None, **contents: object):
    request = proto.ModelInferRequest(model_name="m", model_version="2", id="7")
    tensor = request.inputs.add(name="x", datatype=datatype, shape=shape)
    for field, values in contents.items():
        getattr(tensor.contents, field).extend(values)
    if raw is not None:
        request.raw_input_contents.append(raw)
    request.outputs.add(name="y")
    request.parameters["timeout"].int64_param = 9
    return request


@pytest.mark.feature("P7")
def test_a_raw_request() -> None:
    request = decode(message(raw=np.array([1, 2], "f4").tobytes()))
    assert (request.model_name, request.model_version, request.id) == ("m", "2", "7")
    assert request.outputs == ("y",)
    assert request.parameters == {"timeout": 9}
    assert request.inputs[0].array.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("datatype", "field", "values"),
    [
        ("BOOL", "bool_contents", [True, False]),
        ("UINT8", "uint_contents", [0, 255]),
        ("UINT16", "uint_contents", [0, 65535]),
        ("UINT32", "uint_contents", [0, 2**32 - 1]),
        ("UINT64", "uint64_contents", [0, 2**64 - 1]),
        ("INT8", "int_contents", [-128, 127]),
        ("INT16", "int_contents", [-(2**15), 2**15 - 1]),
        ("INT32", "int_contents", [-(2**31), 2**31 - 1]),
        ("INT64", "int64_contents", [-(2**63), 2**63 - 1]),
        ("FP32", "fp32_contents", [0.5, -1]),
        ("FP64", "fp64_contents", [0.1, -1]),
        ("BYTES", "bytes_contents", [b"", b"\xff\x00"]),
    ],
)
@pytest.mark.feature("P7")
def test_typed_contents(datatype: str, field: str, values: list[object]) -> None:
    array = decode(message(datatype, **{field: values})).inputs[0].array
    assert array.dtype == DATATYPES[datatype].dtype
    assert array.tolist() == values


@pytest.mark.parametrize(
    ("request_message", "sentence"),
    [
        pytest.param(message(), "got 0 elements in fp32_contents, expecting 2", id="no contents at all"),
        pytest.param(message(fp32_contents=[1]), "got 1 elements in fp32_contents, expecting 2", id="too few"),
        pytest.param(message(int_contents=[1, 2]), "is FP32, but its contents are int_contents", id="another type's"),
        pytest.param(message(raw=bytes(8), fp32_contents=[1, 2]), "has contents, but the request has raw", id="both"),
        pytest.param(message(raw=bytes(7)), "unexpected byte size 7, expecting 8", id="half a number"),
        pytest.param(message(shape=(-1,), raw=bytes(8)), "must be integers >= 0", id="a negative dimension"),
        pytest.param(message(shape=(2**62, 4), raw=bytes(8)), "too large", id="a product beyond 64 bits"),
        pytest.param(message("UINT8", uint_contents=[1, 256]), "does not fit UINT8", id="too large for its type"),
        pytest.param(message("FLOAT", raw=bytes(8)), "V2 knows BOOL", id="an unknown datatype"),
    ],
)
def test_wrong_requests_are_refused_in_words(request_message: object, sentence: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        decode(request_message)
    assert sentence in str(caught.value)


def test_more_raw_contents_than_inputs() -> None:
    request = message(raw=bytes(8))
    request.raw_input_contents.append(b"")
    with pytest.raises(InvalidArgument, match="1 inputs, but 2 raw_input_contents"):
        decode(request)


def test_datatypes_without_typed_contents_are_sent_back_to_raw() -> None:
    with pytest.raises(Unsupported, match="send raw_input_contents"):
        decode(message("FP16", fp32_contents=[1, 2]))


@given(st.binary(max_size=120))
def test_whatever_message_comes_is_taken_or_refused(content: bytes) -> None:
    request = proto.ModelInferRequest()
    try:
        request.ParseFromString(content)
    except DecodeError:  # no message: grpcio answers that
        return
    with contextlib.suppress(InvalidArgument, Unsupported):
        decode(request)


def test_answers_are_raw() -> None:
    outputs = (
        Tensor("y", DATATYPES["FP32"], np.array([[1], [2]], "f4")),
        Tensor("t", DATATYPES["BYTES"], np.array([b"a"], dtype=object)),
    )
    answer = infer.encode(InferResponse("m", "2", outputs, "7"), SharedMemory(allowed=False), {})
    assert (answer.model_name, answer.model_version, answer.id) == ("m", "2", "7")
    assert [(output.name, output.datatype, list(output.shape)) for output in answer.outputs] == [
        ("y", "FP32", [2, 1]),
        ("t", "BYTES", [1]),
    ]
    assert list(answer.raw_output_contents) == [np.array([1, 2], "f4").tobytes(), b"\x01\x00\x00\x00a"]
