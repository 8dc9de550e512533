"""A real server limits the requests at once of a caller, over every protocol, and forgets clients that are killed."""

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np
import pytest

from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

ROWS, LIMIT = 16, 4
HELD = f"""
max_batch_size: {ROWS}
dynamic_batching {{ preferred_batch_size: [ {ROWS} ] max_queue_delay_microseconds: 3600000000 }}
"""
"""Requests wait until there are ROWS rows of them: a test decides when they are answered."""
SERVICE = "/inference.GRPCInferenceService"
THREADS = ThreadPoolExecutor(4 * LIMIT)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root: Path = tmp_path_factory.mktemp("repository")
    onnx_models.identity(onnx_models.configure(root / "held", HELD) / "1" / "model.onnx")
    with server(root, scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


def body(rows: int = 1) -> dict[str, object]:
    return {"inputs": [{"name": "x", "datatype": "FP32", "shape": [rows, 4], "data": [1.0] * 4 * rows}]}


def message(rows: int = 1) -> bytes:
    made = proto.ModelInferRequest(model_name="held", raw_input_contents=[np.ones((rows, 4), "f4").tobytes()])
    made.inputs.add(name="x", datatype="FP32", shape=[rows, 4])
    content: bytes = made.SerializeToString()
    return content


class Client:
    """Sends requests of one caller, each on a connection of its own."""

    def __init__(self, process: ServerProcess, caller: str, limit: int = LIMIT) -> None:
        self._process = process
        self._headers = {"fairlead-caller": caller, **({"fairlead-caller-limit": str(limit)} if limit else {})}

    async def v2(self, rows: int = 1) -> int:
        return await self._post("/v2/models/held/infer", body(rows))

    async def v1(self, rows: int = 1) -> int:
        return await self._post("/v1/models/held:predict", {"instances": [[1.0] * 4] * rows})

    async def events(self, rows: int = 1) -> int:
        return await self._post("/v2/models/held/infer_stream", body(rows))

    async def _post(self, path: str, content: object) -> int:
        async with httpx.AsyncClient(base_url=self._process.url, timeout=60) as client:
            found = await client.post(path, json=content, headers=self._headers)
        if found.status_code == 429:
            assert found.headers["retry-after"] == "1"
            assert found.json().keys() == {"error"}
            assert f"concurrentRequests is {LIMIT};" in found.json()["error"]
        return found.status_code

    async def unary(self, rows: int = 1) -> int:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self._process.grpc}") as channel:
            call = channel.unary_unary(f"{SERVICE}/ModelInfer")
            return await _status(call(message(rows), metadata=[*self._headers.items()], timeout=60))

    async def stream(self, rows: int = 1) -> int:
        """Use a thread: grpc.aio may report INTERNAL where a call is refused before its first message is sent."""
        with grpc.insecure_channel(f"127.0.0.1:{self._process.grpc}") as channel:
            stream = channel.stream_stream(f"{SERVICE}/ModelStreamInfer")
            call = stream(iter([message(rows)]), metadata=[*self._headers.items()], timeout=60)
            try:
                return await asyncio.get_running_loop().run_in_executor(THREADS, _read, call)
            finally:
                call.cancel()

    async def send(self, kind: str, rows: int = 1) -> int:
        """Return 200 for an answer, 429 for a refusal; raises for anything else."""
        status: int = await getattr(self, kind)(rows)
        return status


def _read(call: Any) -> int:
    try:
        for answer in call:
            assert not proto.message("inference.ModelStreamInferResponse").FromString(answer).error_message
    except grpc.RpcError:
        if call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "too many requests at once" in call.details():
            return 429
        raise
    return 200


async def _status(call: object) -> int:
    try:
        await call  # type: ignore[misc]
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "too many requests at once" in str(error.details()):
            return 429
        raise
    return 200


async def until_in_flight(process: ServerProcess, count: int) -> None:
    async with asyncio.timeout(30):
        while await asyncio.to_thread(process.metric, "fairlead_inflight_requests") != count:
            pass


KINDS = ("v2", "v1", "events", "unary", "stream")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_caller_has_as_many_requests_at_once_as_its_limit_and_others_are_served(
    running: ServerProcess, kind: str
) -> None:
    greedy, polite = Client(running, "greedy"), Client(running, "polite")
    sent = [asyncio.create_task(greedy.send(kind)) for _ in range(2 * LIMIT)]
    refused, held = await asyncio.wait_for(_first(sent, LIMIT), 30)
    assert [each.result() for each in refused] == [429] * LIMIT
    await until_in_flight(running, LIMIT)
    for other in KINDS:
        assert await greedy.send(other) == 429, "over whatever protocol"
    assert await polite.send("v2", ROWS - LIMIT) == 200
    assert [await each for each in held] == [200] * LIMIT
    assert await greedy.send(kind, ROWS) == 200, "there is room again"


async def _first(sent: list["asyncio.Task[int]"], count: int) -> tuple[list["asyncio.Task[int]"], ...]:
    """Return the tasks of which so many are done, and the others."""
    while sum(each.done() for each in sent) < count:
        await asyncio.wait([each for each in sent if not each.done()], return_when=asyncio.FIRST_COMPLETED)
    return [each for each in sent if each.done()], [each for each in sent if not each.done()]


async def test_requests_without_a_limit_are_not_refused(running: ServerProcess) -> None:
    unlimited = Client(running, "anyone", limit=0)
    sent = [asyncio.create_task(unlimited.send(kind)) for kind in ("v2", "unary") for _ in range(ROWS // 2)]
    assert set(await asyncio.gather(*sent)) == {200}


OVER_HTTP = """
    import json, socket, sys
    for _ in range(4):
        kept = globals().setdefault("kept", [])
        kept.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
        body = sys.argv[3].encode()
        head = "POST /v2/models/held/infer HTTP/1.1\\r\\nHost: x\\r\\nfairlead-caller: killed\\r\\n"
        head += "fairlead-caller-limit: 4\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body)
        kept[-1].sendall(head.encode() + body)
    sys.stdin.read()
"""
OVER_GRPC = """
    import grpc, sys
    channel = grpc.insecure_channel("127.0.0.1:" + sys.argv[2])
    metadata = [("fairlead-caller", "killed"), ("fairlead-caller-limit", "4")]
    message = bytes.fromhex(sys.argv[4])
    infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
    stream = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
    calls = [infer.future(message, metadata=metadata) for _ in range(2)]
    calls += [stream(iter([message]), metadata=metadata) for _ in range(2)]
    sys.stdin.read()
"""


@pytest.mark.parametrize("program", [OVER_HTTP, OVER_GRPC], ids=["http", "grpc"])
async def test_a_client_that_is_killed_gives_all_its_places_back(running: ServerProcess, program: str) -> None:
    content = httpx.Request("POST", "http://x", json=body()).content.decode()
    arguments = [str(running.http), str(running.grpc), content, message().hex()]
    again = Client(running, "killed")
    for _ in range(3):
        code = textwrap.dedent(program)
        client = await asyncio.create_subprocess_exec(sys.executable, "-c", code, *arguments, stdin=subprocess.PIPE)
        try:
            await until_in_flight(running, LIMIT)
            assert [await again.send(kind) for kind in ("v2", "unary")] == [429, 429]
        finally:
            client.kill()
            await client.wait()
        await until_in_flight(running, 0)
        sent = [asyncio.create_task(again.send(kind, ROWS // LIMIT)) for kind in ("v2", "v2", "unary", "stream")]
        assert await asyncio.gather(*sent) == [200] * LIMIT, "the whole limit is free again"


@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_requests_give_their_places_back(running: ServerProcess, kind: str) -> None:
    caller = Client(running, "impatient")
    for _ in range(5):
        sent = [asyncio.create_task(caller.send(kind)) for _ in range(LIMIT)]
        await until_in_flight(running, LIMIT)
        for each in sent:
            each.cancel()
        for each in sent:
            with suppress(asyncio.CancelledError):
                await each
        await until_in_flight(running, 0)
    assert await caller.send(kind, ROWS) == 200
