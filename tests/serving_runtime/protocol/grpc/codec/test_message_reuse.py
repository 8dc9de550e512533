"""Messages that are taken apart without protobuf are read, and answered, as protobuf would."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from serving_runtime import proto
from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.request import InferRequest, InferResponse, Tensor
from serving_runtime.engine.memory.shared_memory import SharedMemory
from serving_runtime.proto import ModelInferRequest, ModelInferResponse
from serving_runtime.protocol.grpc.codec import infer
from serving_runtime.protocol.grpc.codec.message_reuse import KnownRequests, _mark

BYTES_A = b"\x01\x00\x00\x00a"
MEMORY = SharedMemory(allowed=False)


def message(*tensors: Any, model: str = "m", **more: Any) -> Any:
    """Return a ModelInferRequest of arrays, all FP32 or INT64."""
    made = ModelInferRequest(model_name=model, **more)
    for number, array in enumerate(tensors):
        datatype = "FP32" if array.dtype == np.float32 else "INT64"
        made.inputs.add(name=f"x{number}", datatype=datatype, shape=array.shape)
        made.raw_input_contents.append(array.tobytes())
    return made


def learn(known: KnownRequests, content: bytes) -> InferRequest:
    parsed = ModelInferRequest.FromString(content)
    request, _ = infer.decode(parsed, MEMORY)
    known.learn(memoryview(content), parsed, request)
    return request


def found(known: KnownRequests, content: bytes) -> InferRequest | None:
    find = known.find(memoryview(content))
    return None if find is None else find[0]


def same(one: InferRequest, other: InferRequest) -> bool:
    plain = one._replace(inputs=()) == other._replace(inputs=())
    pairs = zip(one.inputs, other.inputs, strict=True)
    return plain and all(a[:2] == b[:2] and np.array_equal(a[2], b[2], equal_nan=True) for a, b in pairs)


FLOATS = arrays(np.float32, st.sampled_from([(1,), (1, 3), (2, 3), (40,)]))
INTEGERS = arrays(np.int64, st.sampled_from([(1,), (2, 3), (300,)]))
REQUESTS = st.builds(
    lambda tensors, model, version, outputs: message(
        *tensors, model=model, model_version=version, outputs=[{"name": name} for name in outputs]
    ),
    st.lists(FLOATS | INTEGERS, min_size=1, max_size=3),
    st.sampled_from(["m", "n", "a longer name"]),
    st.sampled_from(["", "1"]),
    st.sampled_from([(), ("y",), ("y", "z")]),
)


@given(st.lists(REQUESTS, min_size=1, max_size=5), REQUESTS)
def test_a_known_message_is_read_as_protobuf_reads_it(before: list[Any], asked: Any) -> None:
    known = KnownRequests()
    for one in before:
        learn(known, one.SerializeToString())
    content = asked.SerializeToString()
    expected, _ = infer.decode(ModelInferRequest.FromString(content), MEMORY)
    request = found(known, content)
    assert request is None or same(request, expected)
    learn(known, content)
    again = found(known, content)
    assert again is not None
    assert same(again, expected)


def test_the_tensors_are_those_of_each_message() -> None:
    known = KnownRequests()
    learn(known, message(np.zeros((2, 3), "f4"), np.zeros(4, "i8")).SerializeToString())
    first, second = np.arange(6, dtype="f4").reshape(2, 3), np.arange(4)
    request = found(known, message(first, second).SerializeToString())
    assert request is not None
    assert np.array_equal(request.inputs[0].array, first)
    assert np.array_equal(request.inputs[1].array, second)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(message(np.ones((1, 6), "f4")), id="another shape"),
        pytest.param(message(np.ones((2, 3), "f4"), model="n"), id="another model"),
        pytest.param(message(np.ones((2, 3), "f4"), id="one"), id="an id"),
        pytest.param(message(np.ones(3, "i8")), id="another datatype"),
        pytest.param(message(np.ones((2, 3), "f4"), outputs=[{"name": "y"}]), id="other outputs"),
    ],
)
def test_a_message_that_is_otherwise_another_is_not_known(other: Any) -> None:
    known = KnownRequests()
    learn(known, message(np.zeros((2, 3), "f4")).SerializeToString())
    assert found(known, other.SerializeToString()) is None


@pytest.mark.parametrize(
    "unlike",
    [
        pytest.param(message(np.ones(3, "f4"), id="one").SerializeToString(), id="an id of its own"),
        pytest.param(
            message(np.ones(3, "f4"), parameters={"timeout": {"int64_param": 5}}).SerializeToString(), id="a parameter"
        ),
        pytest.param(
            message(np.ones(3, "f4"), outputs=[{"name": "y", "parameters": {"classification": {"int64_param": 2}}}])
            .SerializeToString(),
            id="classes",
        ),
        pytest.param(
            message(np.ones(3, "f4")).SerializeToString() + ModelInferRequest(model_version="2").SerializeToString(),
            id="something behind the tensors",
        ),
        pytest.param(
            ModelInferRequest(
                model_name="m", inputs=[{"name": "x", "datatype": "BYTES", "shape": [1]}], raw_input_contents=[BYTES_A]
            ).SerializeToString(),
            id="elements of no fixed size",
        ),
        pytest.param(
            ModelInferRequest(
                model_name="m", inputs=[{"name": "x", "datatype": "BOOL", "shape": [1]}], raw_input_contents=[b"\2"]
            ).SerializeToString(),
            id="bytes that are not yet an array",
        ),
    ],
)  # fmt: skip
def test_messages_that_do_not_come_again_are_not_kept(unlike: bytes) -> None:
    known = KnownRequests()
    learn(known, unlike)
    assert found(known, unlike) is None


def test_a_head_that_ends_within_a_field_is_none() -> None:
    """A name that holds what looks like the tensor, behind the tensor itself."""
    raw = b"text"
    tensor = _mark(b"\x3a", len(raw)) + raw
    plain = message(np.ones(1, "f4"))
    del plain.raw_input_contents[:]
    odd = plain.SerializeToString() + tensor + b"\x0a" + bytes([1 + len(tensor)]) + b"m" + tensor
    known = KnownRequests()
    request = learn(known, odd)
    assert request.model_name.startswith("m:")
    assert found(known, odd) is None


def test_what_is_kept_is_bounded_and_holds_no_tensor() -> None:
    known = KnownRequests()
    for size in range(1, 600):
        learn(known, message(np.ones(size, "f4")).SerializeToString())
        assert len(known._by_length) <= 256
    kept = [one for alike in known._by_length.values() for one in alike]
    assert kept
    assert not any(one._request.inputs for one in kept)
    learn(known, message(np.ones(3, "f4"), model="m" * 5000).SerializeToString())
    assert found(known, message(np.ones(3, "f4"), model="m" * 5000).SerializeToString()) is None
    known.clear()
    assert not known._by_length


OUTPUTS = st.lists(
    st.tuples(st.sampled_from(["FP32", "INT64", "BYTES"]), st.sampled_from([(1, 2), (2, 2), (0, 2)])),
    min_size=0,
    max_size=3,
)


def response(outputs: list[tuple[str, tuple[int, ...]]], parameters: dict[str, Any]) -> InferResponse:
    made = []
    for number, (name, shape) in enumerate(outputs):
        datatype = DATATYPES[name]
        array = np.full(shape, b"a" * number if name == "BYTES" else number, datatype.dtype)
        made.append(Tensor(f"y{number}", datatype, array))
    return InferResponse("m", "1", tuple(made), "", parameters)


@given(OUTPUTS, st.sampled_from([{}, {"a": 1}]))
def test_answers_are_those_that_protobuf_makes(
    outputs: list[tuple[str, tuple[int, ...]]], told: dict[str, int]
) -> None:
    known = KnownRequests()
    content = message(np.ones(3, "f4")).SerializeToString()
    learn(known, content)
    find = known.find(memoryview(content))
    assert find is not None
    answer = response(outputs, told)
    expected = infer.encode(answer, MEMORY, {})
    for _ in range(3):
        assert ModelInferResponse.FromString(find[1].serialized(answer, MEMORY)) == expected


@given(OUTPUTS, st.sampled_from([{}, {"a": 1}]), st.lists(st.booleans(), min_size=2, max_size=4))
def test_answers_in_streams_are_those_that_protobuf_makes(
    outputs: list[tuple[str, tuple[int, ...]]], told: dict[str, int], finals: list[bool]
) -> None:
    known = KnownRequests()
    content = message(np.ones(3, "f4")).SerializeToString()
    learn(known, content)
    find = known.find(memoryview(content))
    assert find is not None
    kind = proto.message("inference.ModelStreamInferResponse")
    for final in finals:
        answer = response(outputs, told)._replace(final=final)
        expected = infer.encode_stream(answer, MEMORY, {})
        assert kind.FromString(find[1].serialized_in_stream(answer, MEMORY)) == kind.FromString(expected)
