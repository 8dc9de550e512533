"""Answers and shared memory of many megabytes are left to a thread: the event loop answers all other clients."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving_runtime import proto
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.memory.shared_memory import SharedMemory
from serving_runtime.engine.requests import classification
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.grpc.services.inference import V2Service
from serving_runtime.protocol.http.api.v2 import V2Application
from serving_runtime.protocol.http.wire.message import Response
from serving_runtime.protocol.tensors import json_tensors
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.applications import handled

NUMBERS = np.linspace(0, 1, 400_000, dtype="f4").reshape(1, -1)
SMALL = NUMBERS[:, :10].copy()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    onnx_models.identity(tmp_path / "m" / "1" / "model.onnx", shape=("N", "M"))
    engine = Engine([tmp_path], LoadSettings(), shared_memory=SharedMemory(allowed=True))
    assert await engine.load_all() == []
    yield engine
    engine.close()


@pytest.fixture
def region(engine: Engine) -> Iterator[Path]:
    """A region of shared memory with the numbers in it and as much room behind them, registered as "r"."""
    path = Path("/dev/shm", f"fairlead-test-{os.getpid()}")
    path.write_bytes(NUMBERS.tobytes() + bytes(NUMBERS.nbytes))
    try:
        engine.shared_memory.register("r", path.name, 0, 2 * NUMBERS.nbytes)
        yield path
    finally:
        path.unlink()


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """Return a list that the threads go into which render, look for classes, or copy shared memory."""
    found: list[threading.Thread] = []
    for owner, name in (
        (json_tensors, "encode"),
        (classification, "highest"),
        (SharedMemory, "read"),
        (SharedMemory, "write"),
    ):
        monkeypatch.setattr(owner, name, _noted(getattr(owner, name), found))
    return found


def written(region: Path) -> bytes:
    return region.read_bytes()[NUMBERS.nbytes :]


def _noted(function: Any, found: list[threading.Thread]) -> Any:
    def call(*arguments: Any, **named: Any) -> Any:
        found.append(threading.current_thread())
        return function(*arguments, **named)

    return call


async def answer_to(engine: Engine, array: Any, **outputs: Any) -> Response:
    """Return the answer to an infer request with a binary tensor."""
    tensor = {"name": "x", "datatype": "FP32", "shape": array.shape, "parameters": {"binary_data_size": array.nbytes}}
    head = json.dumps({"inputs": [tensor], "outputs": [{"name": "y", "parameters": outputs}]}).encode()
    return await handled(V2Application(engine), "/v2/models/m/infer", head + array.tobytes(), json_length=len(head))


def body_of(response: Response) -> Any:
    assert response.status == 200
    return json.loads(b"".join(response.chunks))


async def test_a_large_answer_in_json(engine: Engine, threads: list[threading.Thread]) -> None:
    answer = body_of(await answer_to(engine, NUMBERS))
    assert np.array_equal(np.array(answer["outputs"][0]["data"], "f4"), NUMBERS[0])
    assert threads
    assert threading.main_thread() not in threads


async def test_a_large_answer_of_v1(engine: Engine, threads: list[threading.Thread]) -> None:
    body = json.dumps({"instances": NUMBERS.tolist()}).encode()
    answer = body_of(await handled(V2Application(engine), "/v1/models/m:predict", body))
    assert np.array_equal(np.array(answer["predictions"], "f4"), NUMBERS)
    assert threads
    assert threading.main_thread() not in threads


async def test_many_classes(engine: Engine, threads: list[threading.Thread]) -> None:
    answer = body_of(await answer_to(engine, NUMBERS, classification=2))
    assert [text.split(":")[1] for text in answer["outputs"][0]["data"]] == ["399999", "399998"]
    assert threads[0] is not threading.main_thread()


async def test_a_small_answer_needs_no_thread(engine: Engine, threads: list[threading.Thread]) -> None:
    body_of(await answer_to(engine, SMALL))
    assert threads == [threading.main_thread()]


async def test_shared_memory_over_http(engine: Engine, region: Path, threads: list[threading.Thread]) -> None:
    part = {"shared_memory_region": "r", "shared_memory_byte_size": NUMBERS.nbytes}
    tensor = {"name": "x", "datatype": "FP32", "shape": NUMBERS.shape, "parameters": part}
    output = {"name": "y", "parameters": {**part, "shared_memory_offset": NUMBERS.nbytes}}
    content = {"inputs": [tensor], "outputs": [output]}
    body_of(await handled(V2Application(engine), "/v2/models/m/infer", json.dumps(content).encode()))
    assert written(region) == NUMBERS.tobytes()
    assert len(threads) == 2
    assert threading.main_thread() not in threads


async def test_shared_memory_over_grpc(engine: Engine, region: Path, threads: list[threading.Thread]) -> None:
    request = proto.ModelInferRequest(model_name="m")
    for tensor in (request.inputs.add(name="x", datatype="FP32", shape=NUMBERS.shape), request.outputs.add(name="y")):
        tensor.parameters["shared_memory_region"].string_param = "r"
        tensor.parameters["shared_memory_byte_size"].int64_param = NUMBERS.nbytes
    request.outputs[0].parameters["shared_memory_offset"].int64_param = NUMBERS.nbytes
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    V2Service(engine).infer(memoryview(request.SerializeToString()), answer.set_result)
    message, _rows = await asyncio.wait_for(answer, 60)
    assert isinstance(message, bytes)
    assert written(region) == NUMBERS.tobytes()
    assert len(threads) == 2
    assert threading.main_thread() not in threads
