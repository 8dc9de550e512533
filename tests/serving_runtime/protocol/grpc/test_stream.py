"""One call of many requests: its memory is bounded whatever its requests wait for."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving_runtime import proto
from serving_runtime.errors import InvalidArgument
from serving_runtime.protocol.grpc import stream
from serving_runtime.protocol.grpc.stream import InferStream
from tests.serving_runtime import onnx_models
from tests.serving_runtime.engine.serving import engine_of, infer, until

WAITS = "max_batch_size: 2 dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 60000000 }"
FOLLOWING = 20
OWN = Path(__file__).parents[2] / "own_backends"


def message(model: str) -> tuple[Any, int]:
    """Ones [1,4] as input x, and the message's size."""
    request = proto.message("inference.ModelInferRequest")(model_name=model)
    request.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    request.raw_input_contents.append(np.ones((1, 4), "f4").tobytes())
    return request, request.ByteSize()


@pytest.mark.feature("P13")
@pytest.mark.parametrize("limit", ["MAX_IN_FLIGHT", "MAX_IN_FLIGHT_BYTES"])
async def test_answers_that_wait_behind_a_slow_one_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    most = 8
    _, size_bytes = message("quick")
    monkeypatch.setattr(stream, limit, most if limit == "MAX_IN_FLIGHT" else size_bytes * most)
    for name, config in (("slow", WAITS), ("quick", "max_batch_size: 2")):
        onnx_models.identity(onnx_models.configure(tmp_path / name, config) / "1" / "model.onnx")
    read = 0
    written: list[Any] = []

    async def requests() -> AsyncIterator[tuple[Any, int]]:
        nonlocal read
        for name in ("slow", *["quick"] * FOLLOWING):
            read += 1
            yield message(name)

    async def write(content: bytes) -> None:
        written.append(proto.message("inference.ModelStreamInferResponse").FromString(content))

    async with engine_of(tmp_path) as engine:
        await engine.load("slow")
        await engine.load("quick")
        quick = engine.servable("quick").statistics
        call = asyncio.create_task(InferStream(engine, errors_end=False).run(requests(), write))
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

    async def requests() -> AsyncIterator[tuple[Any, int]]:
        endless = proto.message("inference.ModelInferRequest")(model_name="repeat")
        endless.inputs.add(name="x", datatype="INT32", shape=[1]).contents.int_contents.append(-1)
        yield endless, endless.ByteSize()
        await begun.wait()
        raise InvalidArgument("the second request is no message")

    async with engine_of(tmp_path, backend_directory=OWN) as engine:
        await engine.load("repeat")
        call = InferStream(engine, errors_end=False)

        async def write(_content: bytes) -> None:
            begun.set()
            await until(lambda: bool(call._outbox), "the model has answered again")

        with pytest.raises(InvalidArgument, match="is no message"):
            await asyncio.wait_for(call.run(requests(), write), 10)
        await until(lambda: engine.inflight == 0, "the model was told to stop")
