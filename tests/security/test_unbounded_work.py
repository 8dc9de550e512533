"""Attacks that make a runtime hold or do much: it bounds what they take, and answers others meanwhile."""

import asyncio
import gzip
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from benchmarks.flood import attacks
from benchmarks.flood.attacks import Answers, Target
from benchmarks.flood.served import write_models
from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

MIB = 2**20
REQUESTS, MODELS = 64 * MIB, 256 * MIB
LIBRARIES = 64 * MIB
"""That a server may grow by whatever it is sent, as its libraries are first used."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    scratch = tmp_path_factory.mktemp("flood")
    write_models(scratch / "models")
    flags = [
        "--model-control-mode=explicit",
        f"--load-model={attacks.MODEL}",
        "--load-model=wide",
        f"--max-request-memory-bytes={REQUESTS}",
        f"--model-memory-budget-bytes={MODELS}",
    ]
    with server(scratch / "models", *flags, scratch=scratch) as process:
        yield process


def resident_bytes(served: ServerProcess) -> int:
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


@contextmanager
def watched(served: ServerProcess) -> Iterator[dict[str, int]]:
    """Ask for health and an inference all the time, and yield how often both were answered, and the most memory."""
    seen = {"answered": 0, "most_bytes": 0, "failed": 0}
    before = resident_bytes(served)
    over = threading.Event()

    def ask() -> None:
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
        with httpx.Client(base_url=served.url, timeout=30) as client:
            while not over.is_set():
                answers = client.get("/v2/health/live"), client.post(f"/v2/models/{attacks.MODEL}/infer", json=body)
                seen["failed" if any(answer.status_code != 200 for answer in answers) else "answered"] += 1
                seen["most_bytes"] = max(seen["most_bytes"], resident_bytes(served) - before)

    asking = threading.Thread(target=ask)
    asking.start()
    deadline = time.monotonic() + 20
    try:
        while not seen["answered"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield seen
    finally:
        over.set()
        asking.join()


def attacked(served: ServerProcess, attack: Callable[[Target], Awaitable[Answers]], most_bytes: int) -> Counter[str]:
    """Return what an attack was answered, while others were answered and the memory stayed below its limit."""

    async def run() -> Answers:
        return await attack(Target(served.http, served.grpc))

    with watched(served) as seen:
        answers = asyncio.run(run())
    assert not seen["failed"]
    assert seen["most_bytes"] < most_bytes + LIBRARIES
    return answers


def test_unfinished_bodies_hold_no_more_than_the_budget(served: ServerProcess) -> None:
    answers = attacked(
        served,
        lambda target: attacks.unfinished_bodies(target, clients=20, size_bytes=20_000_000, hold_s=2),
        2 * REQUESTS,
    )
    assert answers["503"] >= 17
    assert answers["held"] <= 3


def test_unfinished_calls_hold_no_more_than_the_budget(served: ServerProcess) -> None:
    """Four connections with 240 MB."""
    answers = attacked(
        served, lambda target: attacks.unfinished_calls(target, connections=4, calls=1000, hold_s=3), 2 * REQUESTS
    )
    assert sum(answers.values()) == 4
    message = proto.ModelInferRequest(model_name="wide")
    message.inputs.add(name="x", datatype="FP32", shape=[1, 4 * MIB])
    message.raw_input_contents.append(bytes(16 * MIB))
    options = [("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc}", options) as channel:  # nothing of it is left
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        for _ in range(10):
            infer(message.SerializeToString(), timeout=30)


def test_a_refusal_says_what_to_do(served: ServerProcess) -> None:
    async def play() -> None:
        first = attacks.infer_head(60_000_000) + bytes(50_000_000)
        _, writer = await asyncio.open_connection("127.0.0.1", served.http)
        writer.write(first)
        async with asyncio.timeout(20):
            await writer.drain()
            async with httpx.AsyncClient(base_url=served.url) as client:
                while True:  # until the first body is there
                    answer = await client.post("/v2/models/small/infer", content=bytes(20_000_000))
                    if answer.status_code == 503:
                        break
        writer.transport.abort()
        assert answer.headers["retry-after"] == "1"
        assert "--max-request-memory-bytes" in answer.json()["error"]

    asyncio.run(play())


def test_what_inflates_is_counted_as_it_inflates(served: ServerProcess) -> None:
    answers = attacked(
        served, lambda target: attacks.inflating_bodies(target, clients=10, size_bytes=40_000_000), 3 * REQUESTS
    )
    assert set(answers) <= {"400", "503"}
    assert answers["503"]


def test_a_bomb_of_gzip_is_refused_at_the_size_limit(served: ServerProcess) -> None:
    body = gzip.compress(bytes(100_000_000), 1)
    answer = httpx.post(
        f"{served.url}/v2/models/small/infer", content=body, headers={"Content-Encoding": "gzip"}, timeout=30
    )
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("attack", "expected"),
    [
        pytest.param(lambda target: attacks.many_inputs(target, inputs=330_000), {"400": 1}, id="JSON"),
        pytest.param(lambda target: attacks.many_fields(target, fields=8_000_000), {"grpc-status 3": 1}, id="gRPC"),
    ],
)
def test_very_many_inputs_are_refused_before_they_are_decoded(
    served: ServerProcess, attack: Callable[[Target], Awaitable[Answers]], expected: dict[str, int]
) -> None:
    assert attacked(served, attack, 3 * 20 * MIB) == expected


@pytest.mark.parametrize(
    ("model", "body", "words"),
    [
        pytest.param(
            "small",
            b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[%s]}]}' % b",".join([b"0"] * 500_000),
            "all that the model may be sent",
            id="values",
        ),
        pytest.param(
            "wide",
            b'{"inputs":[{}],"x":{%s}}' % b",".join(b'"%d":0' % n for n in range(1_100_000)),
            "members",
            id="members",
        ),
        pytest.param("wide", b'{"inputs":[{}],"x":[%s]}' % b",".join([b"{}"] * 30_000), "objects", id="objects"),
    ],
)
def test_json_of_too_many_parts_is_refused(served: ServerProcess, model: str, body: bytes, words: str) -> None:
    answer = httpx.post(f"{served.url}/v2/models/{model}/infer", content=body, timeout=30)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_what_stands_in_strings_is_not_counted(served: ServerProcess, tmp_path: Path) -> None:
    """The same characters are right where they are data."""
    onnx_models.identity(tmp_path / "models" / "text" / "1" / "model.onnx", onnx.TensorProto.STRING, (1,))
    text = '{,:"\\' * 200_000
    with server(tmp_path / "models", scratch=tmp_path) as process:
        body = {"inputs": [{"name": "x", "datatype": "BYTES", "shape": [1], "data": [text]}]}
        answer = httpx.post(f"{process.url}/v2/models/text/infer", json=body, timeout=30)
    assert answer.json()["outputs"][0]["data"] == [text]


def test_a_model_that_asks_for_gigabytes_is_refused(served: ServerProcess) -> None:
    assert attacked(served, attacks.large_tensor, MODELS) == {"500": 1}


def test_a_model_whose_first_run_takes_too_much_is_unloaded(served: ServerProcess, tmp_path: Path) -> None:
    """Its size is computed as it runs, so that nothing but the run can tell."""
    folder = tmp_path / "models" / "grown" / "1"
    node = helper.make_node
    nodes = [
        node("ReduceSum", ["x"], ["zero"], keepdims=0),
        node("Cast", ["zero"], ["whole"], to=onnx.TensorProto.INT64),
        node("Add", ["whole", "side"], ["shape"]),
        node("ConstantOfShape", ["shape"], ["large"]),
        node("ReduceSum", ["large"], ["sum"], keepdims=0),
        node("Add", ["x", "sum"], ["y"]),
    ]
    tensors = [("x", onnx.TensorProto.FLOAT, ("N", 4))], [("y", onnx.TensorProto.FLOAT, ("N", 4))]
    side = numpy_helper.from_array(np.array([12_000, 12_000], "i8"), "side")
    onnx_models.save(folder / "model.onnx", nodes, *tensors, initializers=[side])
    flags = ["--model-control-mode=explicit", f"--model-memory-budget-bytes={MODELS}"]
    with server(tmp_path / "models", *flags, scratch=tmp_path) as process:
        answer = httpx.post(f"{process.url}/v2/repository/models/grown/load", timeout=60)
        assert answer.status_code == 500
        assert "first run" in answer.json()["error"]
        deadline = time.monotonic() + 20
        while resident_bytes(process) > MODELS + LIBRARIES:
            assert time.monotonic() < deadline
            time.sleep(0.05)
