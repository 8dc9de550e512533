"""Streams whose answers take long, and whose tensors lie in shared memory: the order stays, and nothing is left."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving_runtime import proto
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.memory.shared_memory import SharedMemory
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.grpc.codec.message_reuse import KnownRequests
from serving_runtime.protocol.grpc.services.stream_infer import InferStream
from serving_runtime.protocol.request_memory import RequestMemory
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support import infer_streams
from tests.serving_runtime._support.engines import until

pytestmark = pytest.mark.feature("E12")

Answer = proto.message("inference.ModelStreamInferResponse")
LARGE = 200_000
"""Elements that are read and written off the event loop."""

SMALL = 10
ROOM = 4 * LARGE
"""Bytes of each half of the region: inputs in the first, outputs in the second."""


@pytest.fixture
def memory() -> RequestMemory:
    return RequestMemory(64 * 1024 * 1024)


@pytest.fixture
async def engine(tmp_path: Path, memory: RequestMemory) -> AsyncIterator[Engine]:
    onnx_models.identity(tmp_path / "m" / "1" / "model.onnx", shape=("N", "M"))
    engine = Engine([tmp_path], LoadSettings(), shared_memory=SharedMemory(allowed=True))
    engine.shared_memory.copies = memory.copies
    assert await engine.load_all() == []
    yield engine
    engine.close()


@pytest.fixture
def region(engine: Engine) -> Iterator[Path]:
    """A region "r" that holds 0, 1, 2 ... and as much room behind them."""
    path = Path("/dev/shm", f"fairlead-streams-{os.getpid()}")
    path.write_bytes(np.arange(LARGE, dtype="f4").tobytes() + bytes(ROOM))
    try:
        engine.shared_memory.register("r", path.name, 0, 2 * ROOM)
        yield path
    finally:
        path.unlink()


def numbers_in(region: Path) -> Any:
    return np.frombuffer(region.read_bytes(), "f4")


def message(
    name: str, elements: int, *, begin: int = 0, region: str = "r", writes: bool = True, room: int = ROOM
) -> memoryview:
    """Return a request whose input lies in the region from element `begin` on, and whose output goes behind it."""
    request = proto.ModelInferRequest(model_name="m", id=name)
    item = request.inputs.add(name="x", datatype="FP32", shape=[1, elements])
    item.parameters["shared_memory_region"].string_param = region
    item.parameters["shared_memory_byte_size"].int64_param = 4 * elements
    item.parameters["shared_memory_offset"].int64_param = 4 * begin
    output = request.outputs.add(name="y")
    if writes:
        output.parameters["shared_memory_region"].string_param = "r"
        output.parameters["shared_memory_byte_size"].int64_param = room
        output.parameters["shared_memory_offset"].int64_param = ROOM
    return memoryview(request.SerializeToString())


def plain(name: str) -> memoryview:
    """Return a small request with its tensor in the message."""
    request = proto.ModelInferRequest(model_name="m", id=name)
    request.inputs.add(name="x", datatype="FP32", shape=[1, 1])
    request.raw_input_contents.append(np.ones(1, "f4").tobytes())
    return memoryview(request.SerializeToString())


async def answers(engine: Engine, memory: RequestMemory, *contents: memoryview) -> list[Any]:
    """Return what is answered to the messages of one call."""
    call = InferStream(engine, KnownRequests(), errors_end=False, memory=memory)
    return await infer_streams.answers(call, *contents, within_s=60)


async def test_large_and_small_tensors_in_shared_memory_keep_their_order(
    engine: Engine, memory: RequestMemory, region: Path
) -> None:
    contents = [message("0", LARGE), message("1", SMALL, begin=5), plain("2"), message("3", LARGE, writes=False)]
    contents += [message(str(number), LARGE // number) for number in range(4, 9)]
    got = await answers(engine, memory, *contents)
    assert [each.infer_response.id for each in got] == [str(number) for number in range(9)]
    assert [each.error_message for each in got] == [""] * 9
    sizes = [each.infer_response.outputs[0].shape[1] for each in got]
    assert sizes == [LARGE, SMALL, 1, LARGE, *[LARGE // number for number in range(4, 9)]]
    in_message = [bool(each.infer_response.raw_output_contents[0]) for each in got]
    assert in_message == [False, False, True, True, *[False] * 5]
    numbers = numbers_in(region)
    assert np.array_equal(numbers[LARGE : LARGE + LARGE // 8], numbers[: LARGE // 8])  # the last that was written
    assert np.array_equal(np.frombuffer(got[3].infer_response.raw_output_contents[0], "f4"), numbers[:LARGE])
    await until(lambda: memory.held_bytes + memory.copies.held_bytes == 0, "nothing is held")


async def test_errors_between_large_answers_are_theirs_alone(
    engine: Engine, memory: RequestMemory, region: Path
) -> None:
    got = await answers(
        engine,
        memory,
        message("0", LARGE),
        message("1", LARGE, region="gone"),
        message("2", LARGE, room=100),  # the answer has no room there
        message("3", LARGE, begin=1_000_000),
        message("4", SMALL),
        message("5", LARGE),
    )
    assert [each.infer_response.id for each in got] == [str(number) for number in range(6)]
    wrong = {number: each.error_message for number, each in enumerate(got) if each.error_message}
    assert list(wrong) == [1, 2, 3]
    assert "'gone' is not registered" in wrong[1]
    assert "100 bytes cannot hold" in wrong[2]
    assert "reach beyond" in wrong[3]
    await until(lambda: memory.held_bytes + memory.copies.held_bytes == 0, "nothing is held")


async def test_copies_beyond_the_limit_are_refused_on_the_stream(
    engine: Engine, memory: RequestMemory, region: Path
) -> None:
    memory.copies.add(memory.arriving_limit_bytes, 0)  # somebody else's
    got = await answers(engine, memory, plain("0"), message("1", LARGE), plain("2"))
    assert [each.infer_response.id for each in got] == ["0", "1", "2"]
    assert ["--max-request-memory-bytes" in each.error_message for each in got] == [False, True, False]


async def test_a_client_that_goes_leaves_nothing(engine: Engine, memory: RequestMemory, region: Path) -> None:
    begun = asyncio.Event()

    async def requests() -> AsyncIterator[memoryview]:
        for number in range(20):
            yield message(str(number), LARGE)
        await asyncio.Event().wait()

    async def write(_content: bytes) -> None:
        begun.set()
        await asyncio.Event().wait()  # the client reads nothing

    call = asyncio.create_task(
        InferStream(engine, KnownRequests(), errors_end=False, memory=memory).run(requests(), write)
    )
    await asyncio.wait_for(begun.wait(), 60)
    await until(lambda: memory.held_bytes > 0, "further requests are under way")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: engine.inflight == 0, "the models have done")
    await until(lambda: memory.held_bytes + memory.copies.held_bytes == 0, "nothing is held")
    assert [each.infer_response.id for each in await answers(engine, memory, message("next", LARGE))] == ["next"]
