"""How often the bytes of a large tensor are copied on their way in and out, by what is allocated meanwhile.

Sockets and protobuf's own memory are not counted here: see test_large_body.py for how a body is received.
"""

import json
import tracemalloc
from collections.abc import Callable
from multiprocessing.shared_memory import SharedMemory as ClientMemory
from typing import Any

import numpy as np
import pytest

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.request import InferResponse, Tensor
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.memory.shared_memory import SharedMemory
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.proto import ModelInferRequest
from serving_runtime.protocol.grpc.codec import infer as grpc_codec
from serving_runtime.protocol.http.codec.infer import InferCodec
from serving_runtime.protocol.http.wire import response_writer
from serving_runtime.protocol.http.wire.message import STATUS_LINES, Request
from serving_runtime.scheduler.execution.execution import joined, parted
from serving_runtime.scheduler.job import Job

SHAPE = (4, 1024, 1024)
ARRAY = np.zeros(SHAPE, "f4")
RESPONSE = InferResponse("m", "1", (Tensor("y", DATATYPES["FP32"], ARRAY),), "")


def copies(work: Callable[[], Any]) -> float:
    """Return how many times the array's size is allocated at most while something is done."""
    work()  # what is made once
    tracemalloc.start()
    try:
        kept = work()
        _, peak = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return round(peak / ARRAY.nbytes, 1)


def http_request() -> Request:
    tensor = {"name": "x", "datatype": "FP32", "shape": SHAPE, "parameters": {"binary_data_size": ARRAY.nbytes}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    return Request(b"POST", b"/", head + ARRAY.tobytes(), 0, len(head))


@pytest.fixture
async def codec() -> InferCodec:
    return InferCodec("m", "1", Engine([], LoadSettings()))


async def test_a_binary_request_over_http_is_not_copied(codec: InferCodec) -> None:
    request = http_request()
    assert copies(lambda: codec.decode(request)) == 0


async def test_an_answer_over_http_is_copied_once(codec: InferCodec) -> None:
    _, head = codec.decode(http_request())
    assert copies(lambda: codec.encode(RESPONSE, head)) == 0
    response = codec.encode(RESPONSE, head)
    assert copies(lambda: response_writer.whole(STATUS_LINES, response, keep_alive=True)) == 1


def test_a_request_over_grpc_is_copied_once() -> None:
    message = ModelInferRequest(model_name="m")
    message.inputs.add(name="x", datatype="FP32", shape=SHAPE)
    message.raw_input_contents.append(ARRAY.tobytes())
    assert copies(lambda: grpc_codec.decode(message, SharedMemory(allowed=False))) == 1


def test_an_answer_over_grpc_is_copied_into_the_message_and_out_of_it() -> None:
    encode = grpc_codec.encode
    assert copies(lambda: encode(RESPONSE, SharedMemory(allowed=False), {})) == 1
    message = encode(RESPONSE, SharedMemory(allowed=False), {})
    assert copies(message.SerializeToString) == 1


def test_shared_memory_is_copied_once_in_and_not_at_all_out() -> None:
    client = ClientMemory(create=True, size=ARRAY.nbytes)
    try:
        memory = SharedMemory(allowed=True, max_read_bytes=ARRAY.nbytes)
        memory.register("region", client.name, 0, ARRAY.nbytes)
        message = ModelInferRequest(model_name="m")
        item = message.inputs.add(name="x", datatype="FP32", shape=SHAPE)
        item.parameters["shared_memory_region"].string_param = "region"
        item.parameters["shared_memory_byte_size"].int64_param = ARRAY.nbytes
        output = message.outputs.add(name="y")
        output.parameters["shared_memory_region"].string_param = "region"
        output.parameters["shared_memory_byte_size"].int64_param = ARRAY.nbytes
        assert copies(lambda: grpc_codec.decode(message, memory)) == 1  # the client may change it while the model runs
        _, parts = grpc_codec.decode(message, memory)
        assert copies(lambda: grpc_codec.encode(RESPONSE, memory, parts)) == 0
        memory.unregister()
    finally:
        client.close()
        client.unlink()


def test_a_request_that_runs_alone_is_not_copied_and_a_batch_is_joined_once() -> None:
    jobs = [Job([part], len(part), None, lambda _result: None, 0) for part in np.split(ARRAY, len(ARRAY))]
    assert copies(lambda: joined(jobs[:1])) == 0
    assert copies(lambda: joined(jobs)) == 1
    assert copies(lambda: parted([ARRAY], jobs)) == 0
