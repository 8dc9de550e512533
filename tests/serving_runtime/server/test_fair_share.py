"""A real server under one greedy caller: another caller's request overtakes the queue, over every protocol."""

import asyncio
import fcntl
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import numpy as np
import pytest

from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

SIZE, GREEDY, ROOM = 64, 9, 6
PYTHON = "--allow-python-models=true"
GATED = Path(__file__).parents[1] / "python_models" / "gated"
QUEUE = f"dynamic_batching {{ default_queue_policy {{ max_queue_size: {ROOM} }} }}"
ROW = [1.0] * SIZE
V2 = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, SIZE], "data": ROW}]}
MESSAGE = proto.ModelInferRequest(model_name="slow", raw_input_contents=[np.ones((1, SIZE), "f4").tobytes()])
MESSAGE.inputs.add(name="x", datatype="FP32", shape=[1, SIZE])
SERVICE = "/inference.GRPCInferenceService"

Ask = Callable[[ServerProcess, str], Awaitable[int]]
"""Sends a request of a caller; returns its HTTP status, or 200 for gRPC's OK."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository of `slow`, whose queue has no limit, and `bounded`, which waits while its gate is shut."""
    root = tmp_path_factory.mktemp("repository")
    onnx_models.slow(onnx_models.configure(root / "slow", "max_batch_size: 8") / "1" / "model.onnx", SIZE, 20_000)
    bounded = shutil.copytree(GATED, root / "bounded", ignore=shutil.ignore_patterns("__pycache__"))
    with (bounded / "config.pbtxt").open("a") as config:
        config.write(QUEUE)
    (bounded / "gate").touch()
    return root


@contextmanager
def shut(repository: Path) -> Iterator[None]:
    """Keep the model `bounded` from ending a request."""
    with (repository / "bounded" / "gate").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def running(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with server(repository, PYTHON, scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


@pytest.fixture(scope="module")
def limited(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Yield a server that passes one request to the models at a time."""
    with server(repository, PYTHON, "--max-concurrent-requests=1", scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


def over_http(path: str, content: object) -> Ask:
    async def ask(process: ServerProcess, caller: str) -> int:
        async with httpx.AsyncClient(base_url=process.url, timeout=60) as client:
            return (await client.post(path, json=content, headers={"fairlead-caller": caller})).status_code

    return ask


async def by_grpc(process: ServerProcess, caller: str) -> int:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{process.grpc}") as channel:
        infer = channel.unary_unary(f"{SERVICE}/ModelInfer")
        await infer(MESSAGE.SerializeToString(), metadata=[("fairlead-caller", caller)], timeout=60)
    return 200


async def by_stream(process: ServerProcess, caller: str) -> int:
    async def requests() -> AsyncIterator[bytes]:
        yield MESSAGE.SerializeToString()

    async with grpc.aio.insecure_channel(f"127.0.0.1:{process.grpc}") as channel:
        stream = channel.stream_stream(f"{SERVICE}/ModelStreamInfer")
        call = stream(requests(), metadata=[("fairlead-caller", caller)], timeout=60)
        async for answer in call:
            assert not proto.message("inference.ModelStreamInferResponse").FromString(answer).error_message
    return 200


ASKS = {
    "v2": over_http("/v2/models/slow/infer", V2),
    "v1": over_http("/v1/models/slow:predict", {"instances": [ROW]}),
    "events": over_http("/v2/models/slow/infer_stream", V2),
    "grpc": by_grpc,
    "stream": by_stream,
}


def accepted(process: ServerProcess) -> float:
    return process.metric("nv_inference_request_success", "nv_inference_request_failure", "fairlead_inflight_requests")


async def until_accepted(process: ServerProcess, count: float) -> None:
    async with asyncio.timeout(30):
        while await asyncio.to_thread(accepted, process) < count:
            pass


async def overtaken(process: ServerProcess, greedy: Ask, polite: Ask, caller: str) -> int:
    """Return how many of the greedy caller's requests were answered after a later one of a caller."""
    before = await asyncio.to_thread(accepted, process)
    flood = [asyncio.create_task(greedy(process, "greedy")) for _ in range(GREEDY)]
    await until_accepted(process, before + GREEDY)
    assert await polite(process, caller) == 200
    left = sum(not each.done() for each in flood)
    assert set(await asyncio.gather(*flood)) == {200}
    return left


@pytest.mark.parametrize(("greedy", "polite"), [*(("v2", kind) for kind in ASKS), ("grpc", "v2"), ("stream", "grpc")])
async def test_another_caller_overtakes_the_queue(running: ServerProcess, greedy: str, polite: str) -> None:
    assert await overtaken(running, ASKS[greedy], ASKS[polite], "polite") >= GREEDY // 3


@pytest.mark.parametrize("polite", ["v2", "grpc"])
async def test_the_same_caller_does_not(running: ServerProcess, polite: str) -> None:
    assert await overtaken(running, ASKS["v2"], ASKS[polite], "greedy") <= 1


async def test_calls_of_one_connection_have_callers_of_their_own(running: ServerProcess) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{running.grpc}") as channel:
        infer = channel.unary_unary(f"{SERVICE}/ModelInfer")

        async def by_this(_process: ServerProcess, caller: str) -> int:
            await infer(MESSAGE.SerializeToString(), metadata=[("fairlead-caller", caller)], timeout=60)
            return 200

        for caller in ("greedy", "other", "greedy"):  # their header blocks are kept from now on
            await by_this(running, caller)
        assert await overtaken(running, by_this, by_this, "polite") >= GREEDY // 3


@pytest.mark.parametrize("polite", ["v2", "stream"])
async def test_so_does_it_at_the_concurrency_limit(limited: ServerProcess, polite: str) -> None:
    assert await overtaken(limited, ASKS["v2"], ASKS[polite], "polite") >= GREEDY // 3


async def test_a_full_queue_refuses_the_greedy_caller_and_not_the_other(
    running: ServerProcess, repository: Path
) -> None:
    def displaced() -> float:
        return running.metric("fairlead_displaced_requests", model="bounded")

    async with httpx.AsyncClient(base_url=running.url, timeout=60) as client:

        async def ask(caller: str) -> httpx.Response:
            return await client.post("/v2/models/bounded/infer", json=V2, headers={"fairlead-caller": caller})

        with shut(repository):
            before = await asyncio.to_thread(accepted, running)
            flood = [asyncio.create_task(ask("greedy"))]
            await until_accepted(running, before + 1)  # the model has it: all others find an empty queue
            flood += [asyncio.create_task(ask("greedy")) for _ in range(ROOM + 3)]
            await until_accepted(running, before + ROOM + 4)
            polite = asyncio.create_task(ask("polite"))
            async with asyncio.timeout(30):
                while not polite.done() and not await asyncio.to_thread(displaced):
                    pass
        answers = await asyncio.gather(*flood)
        assert (await polite).status_code == 200
    refused = [answer for answer in answers if answer.status_code != 200]
    assert {(answer.status_code, answer.headers["retry-after"]) for answer in refused} == {(503, "1")}
    assert sorted(answer.json()["error"] for answer in refused) == [
        *[f"Exceeds maximum queue size of {ROOM} waiting requests"] * 3,
        f"Exceeds maximum queue size of {ROOM} waiting requests, of which this caller has the most",
    ]
    assert displaced() == 1
