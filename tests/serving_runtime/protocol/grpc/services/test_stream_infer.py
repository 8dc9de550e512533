"""One call of many requests: its memory is bounded whatever its requests wait for."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving_runtime import proto
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.grpc.codec import infer as codec
from serving_runtime.protocol.grpc.codec.message_reuse import KnownRequests
from serving_runtime.protocol.grpc.services import stream_infer
from serving_runtime.protocol.grpc.services.stream_infer import InferStream
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support import infer_streams
from tests.serving_runtime._support.engines import engine_of, infer, until

Answer = proto.message("inference.ModelStreamInferResponse")
WAITS = "max_batch_size: 2 dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 60000000 }"
FOLLOWING = 20
OWN = Path(__file__).parents[3] / "own_backends"


def message(model: str, value: float = 1.0, **more: Any) -> memoryview:
    """Return a ModelInferRequest with input x [1,4]."""
    request = proto.ModelInferRequest(model_name=model, **more)
    request.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    request.raw_input_contents.append(np.full((1, 4), value, "f4").tobytes())
    return memoryview(request.SerializeToString())


@pytest.mark.feature("P13")
@pytest.mark.parametrize("limit", ["MAX_IN_FLIGHT", "MAX_IN_FLIGHT_BYTES"])
async def test_answers_that_wait_behind_a_slow_one_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    most = 8
    monkeypatch.setattr(stream_infer, limit, most if limit == "MAX_IN_FLIGHT" else len(message("quick")) * most)
    for name, config in (("slow", WAITS), ("quick", "max_batch_size: 2")):
        onnx_models.identity(onnx_models.configure(tmp_path / name, config) / "1" / "model.onnx")
    read = 0
    written: list[Any] = []

    async def requests() -> AsyncIterator[memoryview]:
        nonlocal read
        for name in ("slow", *["quick"] * FOLLOWING):
            read += 1
            yield message(name)

    async def write(content: bytes) -> None:
        written.append(Answer.FromString(content))

    async with engine_of(tmp_path) as engine:
        await engine.load("slow")
        await engine.load("quick")
        quick = engine.servable("quick").statistics
        call = asyncio.create_task(InferStream(engine, KnownRequests(), errors_end=False).run(requests(), write))
        await until(lambda: bool(quick.successes), "one that came later is answered")
        await until(lambda: not quick.inflight, "all that were read are answered")
        for _ in range(100):
            await asyncio.sleep(0)
        assert read <= most + 1
        assert written == []
        await infer(engine, "slow")  # completes the batch
        await asyncio.wait_for(call, 20)
    names = [each.infer_response.model_name for each in written]
    assert names == ["slow", *["quick"] * FOLLOWING]


async def test_a_call_sees_its_end_while_a_model_answers_faster_than_its_client_reads(tmp_path: Path) -> None:
    config = 'backend: "repeat" model_transaction_policy { decoupled: true }'
    begun = asyncio.Event()
    (onnx_models.configure(tmp_path / "repeat", config) / "1").mkdir()

    async def requests() -> AsyncIterator[memoryview]:
        endless = proto.ModelInferRequest(model_name="repeat")
        endless.inputs.add(name="x", datatype="INT32", shape=[1]).contents.int_contents.append(-1)
        yield memoryview(endless.SerializeToString())
        await begun.wait()
        raise InvalidArgument("the second request is no message")

    async with engine_of(tmp_path, backend_directory=OWN) as engine:
        await engine.load("repeat")
        call = InferStream(engine, KnownRequests(), errors_end=False)

        async def write(_content: bytes) -> None:
            begun.set()
            await until(lambda: bool(call._outbox), "the model has answered again")

        with pytest.raises(InvalidArgument, match="is no message"):
            await asyncio.wait_for(call.run(requests(), write), 10)
        await until(lambda: engine.inflight == 0, "the model was told to stop")


def repeating(count: int) -> memoryview:
    """Return a request for `repeat`, which answers n with 0, 1 ... n-1."""
    request = proto.ModelInferRequest(model_name="repeat")
    request.inputs.add(name="x", datatype="INT32", shape=[1])
    request.raw_input_contents.append(np.array([count], "<i4").tobytes())
    return memoryview(request.SerializeToString())


async def answers(engine: Engine, known: KnownRequests, *contents: memoryview) -> list[Any]:
    """Return what is answered to the messages of one call."""
    call = InferStream(engine, known, errors_end=False)
    return await infer_streams.answers(call, *contents, within_s=20)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    config = 'backend: "repeat" model_transaction_policy { decoupled: true }'
    (onnx_models.configure(tmp_path / "repeat", config) / "1").mkdir()
    onnx_models.identity(onnx_models.configure(tmp_path / "echo", "max_batch_size: 2") / "1" / "model.onnx")
    async with engine_of(tmp_path, backend_directory=OWN) as engine:
        for name in ("echo", "repeat"):
            await engine.load(name)
        yield engine


@pytest.mark.parametrize(
    "contents",
    [
        pytest.param([message("echo", value) for value in range(3)], id="one answer each"),
        pytest.param([repeating(count) for count in (2, 0, 3)], id="any number of answers"),
        pytest.param([message("echo"), message("gone"), message("echo", 2.0)], id="an error between them"),
        pytest.param([message("echo", id=name) for name in ("a", "b")], id="ids of their own"),
    ],
)
async def test_messages_that_were_there_before_are_answered_as_new_ones_are(
    engine: Engine, contents: list[memoryview]
) -> None:
    known = KnownRequests()
    each_by_itself = [answer for content in contents for answer in await answers(engine, KnownRequests(), content)]
    for _ in range(3):
        assert await answers(engine, known, *contents) == each_by_itself
    statistics = [engine.servable(name).statistics for name in ("echo", "repeat")]
    asked = sum(bytes(content).count(b"gone") == 0 for content in contents)
    assert sum(each.successes for each in statistics) == 4 * asked
    assert all(not each.inflight for each in statistics)


async def test_messages_that_were_there_before_are_not_parsed_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = KnownRequests()
    await answers(engine, known, message("echo"), repeating(1))

    def parse(*_arguments: Any) -> None:
        raise AssertionError("this message was there before")

    monkeypatch.setattr(codec, "decode", parse)
    monkeypatch.setattr(codec, "encode_within_stream", parse)
    (answer,) = await answers(engine, known, message("echo", 5.0))
    assert np.frombuffer(answer.infer_response.raw_output_contents[0], "f4").tolist() == [5.0] * 4
    assert answer.infer_response.parameters["triton_final_response"].bool_param
