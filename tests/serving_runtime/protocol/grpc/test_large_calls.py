"""Large calls whose numbers are taken one by one are decoded off the event loop, and answered as small ones are."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving_runtime import proto
from serving_runtime.common.errors import InvalidArgument, ServingError
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.grpc.codec import infer
from serving_runtime.protocol.grpc.methods import Answered
from serving_runtime.protocol.grpc.policy import parsed
from serving_runtime.protocol.grpc.services.inference import V2Service
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.engines import engine_of

NUMBERS = np.arange(800_000, dtype="f4").reshape(4, -1)
Stream = proto.message("inference.ModelStreamInferResponse")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    onnx_models.identity(tmp_path / "m" / "1" / "model.onnx", shape=("N", "M"))
    async with engine_of(tmp_path) as engine:
        await engine.load("m")
        yield engine


@pytest.fixture
def decoders(monkeypatch: pytest.MonkeyPatch) -> set[threading.Thread]:
    """Return a set that the threads go into that decode."""
    threads = set()
    decode = infer.decode

    def noted(*arguments: Any) -> Any:
        threads.add(threading.current_thread())
        return decode(*arguments)

    monkeypatch.setattr(infer, "decode", noted)
    return threads


def message(*, raw: bool = False, datatype: str = "FP32") -> memoryview:
    request = proto.ModelInferRequest(model_name="m", id="1")
    tensor = request.inputs.add(name="x", datatype=datatype, shape=NUMBERS.shape)
    if raw:
        request.raw_input_contents.append(NUMBERS.tobytes())
    else:
        tensor.contents.fp32_contents.extend(NUMBERS.ravel().tolist())
    return memoryview(request.SerializeToString())


async def asked(engine: Engine, content: memoryview) -> Answered | ServingError:
    answer: asyncio.Future[Answered | ServingError] = asyncio.get_running_loop().create_future()
    V2Service(engine).infer(content, answer.set_result)
    return await asyncio.wait_for(answer, 30)


async def test_a_call_with_typed_contents(engine: Engine, decoders: set[threading.Thread]) -> None:
    answer = await asked(engine, message())
    assert not isinstance(answer, ServingError)
    assert proto.ModelInferResponse.FromString(answer[0]).raw_output_contents[0] == NUMBERS.tobytes()
    assert len(decoders) == 1
    assert threading.main_thread() not in decoders


async def test_a_call_that_a_policy_governs(engine: Engine, decoders: set[threading.Thread]) -> None:
    answer = await V2Service(engine).model_infer(proto.ModelInferRequest.FromString(message()))
    assert answer.raw_output_contents[0] == NUMBERS.tobytes()
    assert threading.main_thread() not in decoders


async def test_a_request_of_a_stream(engine: Engine, decoders: set[threading.Thread]) -> None:
    async def requests() -> AsyncIterator[memoryview]:
        yield message()

    written: list[Any] = []

    async def write(content: bytes) -> None:
        written.append(Stream.FromString(content).infer_response)

    await V2Service(engine).model_stream_infer(requests(), write, {})
    assert [answer.raw_output_contents[0] for answer in written] == [NUMBERS.tobytes()]
    assert threading.main_thread() not in decoders


async def test_a_large_raw_tensor_needs_no_thread(engine: Engine, decoders: set[threading.Thread]) -> None:
    answer = await asked(engine, message(raw=True))
    assert not isinstance(answer, ServingError)
    assert answer[1] == len(NUMBERS)
    assert decoders == {threading.main_thread()}


async def test_a_large_call_that_is_wrong_is_refused_and_counted(engine: Engine) -> None:
    before = engine.servable("m").statistics.accepted
    assert isinstance(await asked(engine, message(datatype="INT32")), InvalidArgument)
    assert engine.servable("m").statistics.accepted == before + 1


def test_very_many_elements_that_are_fields_of_their_own_are_refused() -> None:
    def content(count: int) -> memoryview:
        contents = b"\x42\x00" * count  # bytes_contents
        size = len(contents)
        length = bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127 | 128, size >> 21])
        tensor = b"\x2a" + length + contents
        size = len(tensor)
        length = bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127 | 128, size >> 21])
        return memoryview(b"\x2a" + length + tensor)

    assert len(parsed(proto.ModelInferRequest, content(1_000_000)).inputs[0].contents.bytes_contents) == 1_000_000
    with pytest.raises(InvalidArgument, match="send raw_input_contents"):
        parsed(proto.ModelInferRequest, content(1_000_001))
