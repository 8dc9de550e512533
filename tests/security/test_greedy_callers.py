"""A client that reaches the runtime without a gateway and invents callers: memory, turns and places stay bounded.

Behind the gateway it cannot: there the names of callers are the gateway's
(tests/integrations/clusters/local/agent/gateway/test_access.py).
"""

import asyncio
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import numpy as np
import pytest

from serving_runtime import proto
from serving_runtime.common.errors import Overloaded
from serving_runtime.config.batching import QueuePolicy
from serving_runtime.scheduler.fair_queue import OWN_LANES, SHARED_LANES
from serving_runtime.scheduler.job import Job
from serving_runtime.scheduler.queue import JobQueue
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

COUNT = 20_000
LANES = OWN_LANES + SHARED_LANES


def job(caller: bytes) -> Job:
    made = Job((), 1, None, lambda _result: None, 0)
    made.caller = caller
    return made


def flooded(*, invented: bool) -> tuple[JobQueue, int]:
    """Return a queue of many jobs, and the bytes that it takes beside them."""
    jobs = [job(b"caller %d" % number if invented else b"caller") for number in range(COUNT)]
    queue = JobQueue()
    tracemalloc.start()
    try:
        for entry in jobs:
            queue.push(entry)
        return queue, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_invented_callers_cost_no_more_memory_than_their_requests() -> None:
    _, plain = flooded(invented=False)
    _, invented = flooded(invented=True)
    assert invented - plain < 4096 * LANES, "a few kilobytes for each lane"


def test_callers_who_come_later_cannot_pass_for_ever() -> None:
    queue, _ = flooded(invented=True)
    polite = job(b"polite")
    queue.push(polite)
    for served in range(2 * COUNT):
        if queue.pop(1) == [polite]:
            break
        queue.push(job(b"later %d" % served))
    else:
        pytest.fail(f"{2 * COUNT} services passed a request before which {COUNT} waited")


def test_a_full_queue_stays_full_and_keeps_a_place_for_no_invented_name() -> None:
    queue = JobQueue({0: QueuePolicy(max_queue_size=50)})
    refused = 0
    for number in range(COUNT):
        try:
            queue.push(job(b"caller %d" % number))
        except Overloaded:
            refused += 1
    assert (len(queue), refused) == (50, COUNT - 50)


def test_a_client_without_invented_names_cannot_push_others_out() -> None:
    queue = JobQueue({0: QueuePolicy(max_queue_size=50)})
    polite = [job(b"polite %d" % number) for number in range(10)]
    for entry in polite:
        queue.push(entry)
    for _ in range(COUNT):
        try:
            displaced = queue.push(job(b"greedy"))
        except Overloaded:
            continue
        assert displaced is None
    assert all(entry.waiting for entry in polite)
    assert [entry for entry in queue.pop(11) if entry in polite] == polite


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root: Path = tmp_path_factory.mktemp("repository")
    onnx_models.identity(onnx_models.configure(root / "same", "max_batch_size: 8") / "1" / "model.onnx")
    with server(root, scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


HOSTILE = (b"", b"x" * 60_000, b"\xff\xfe\x80", b"%s%n\\0../../etc/passwd", b"a, b", "\N{PILE OF POO}".encode() * 100)


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_values_of_the_headers_change_no_answer(running: ServerProcess, value: bytes) -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    names = (b"fairlead-caller", b"Fairlead-Issuer", b"fairlead-subject", b"fairlead-caller")
    async with httpx.AsyncClient(base_url=running.url, timeout=30) as client:
        for headers in ([(name, value) for name in names[:1]], [(name, value[:15_000]) for name in names]):
            answer = await client.post("/v2/models/same/infer", json={"inputs": [tensor]}, headers=headers)
            assert answer.json()["outputs"][0]["data"] == [1, 2, 3, 4], answer.text


async def test_hostile_metadata_change_no_answer(running: ServerProcess) -> None:
    request = proto.ModelInferRequest(model_name="same", raw_input_contents=[np.ones((1, 4), "f4").tobytes()])
    request.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    async with grpc.aio.insecure_channel(f"127.0.0.1:{running.grpc}") as channel:
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        values = ["", "x" * 4000, "a, b", "%s%n", *(f"invented {number}" for number in range(300))]
        calls = [infer(request.SerializeToString(), metadata=[("fairlead-caller", value)]) for value in values]
        assert len(await asyncio.gather(*calls)) == len(values)
