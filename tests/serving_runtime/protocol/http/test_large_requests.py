"""Large requests are decoded off the event loop, which has its turns meanwhile, and are answered as small ones are."""

import asyncio
import gc
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from serving_runtime.common.errors import ServingError
from serving_runtime.protocol.http.api.v2 import V2Application
from serving_runtime.protocol.http.wire.message import Response
from serving_runtime.protocol.tensors import json_tensors
from serving_runtime.protocol.tensors.decoding import SLOW_BYTES, Decoding
from tests.serving_runtime._support.applications import handled, identity_application

DATA = [[0.5, 1.5, 2.5, 3.5] * 50_000] * 4


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def application(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[V2Application]:
    with identity_application(runner, tmp_path_factory.mktemp("repository"), ("N", "M")) as application:
        yield application


def v2(data: list[list[float]], *, datatype: str = "FP32") -> Any:
    shape = [len(data), len(data[0])]
    return {"inputs": [{"name": "x", "datatype": datatype, "shape": shape, "data": data}]}


async def answered(application: V2Application, path: str, content: Any) -> tuple[Response, int]:
    """Return the answer, and how many turns the loop had until it was there."""
    turns: list[None] = []
    body = json.dumps(content).encode()
    answer = await handled(application, path, body, on_turn=lambda: turns.append(None))
    return answer, len(turns)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        pytest.param("/v2/models/m/infer", v2(DATA), id="V2"),
        pytest.param("/v1/models/m:predict", {"instances": DATA}, id="V1 by rows"),
        pytest.param("/v1/models/m:predict", {"inputs": DATA}, id="V1 by columns"),
    ],
)
def test_the_loop_goes_on_while_a_large_request_is_decoded(
    runner: asyncio.Runner, application: V2Application, monkeypatch: pytest.MonkeyPatch, path: str, content: Any
) -> None:
    threads = set()
    decode = json_tensors.decode

    def noted(*arguments: Any) -> Any:
        threads.add(threading.current_thread())
        assert not gc.isenabled()
        return decode(*arguments)

    monkeypatch.setattr(json_tensors, "decode", noted)
    answer, turns = runner.run(answered(application, path, content))
    assert answer.status == 200
    assert turns > 10
    assert threads.isdisjoint({threading.main_thread()})
    assert gc.isenabled()
    found = json.loads(b"".join(answer.chunks))
    if "model_name" in found:
        assert found["outputs"][0]["data"] == [value for row in DATA for value in row]
    else:
        assert list(found.values()) == [DATA]


def test_a_large_request_that_is_wrong_is_refused_and_counted(
    runner: asyncio.Runner, application: V2Application
) -> None:
    before = application._engine.servable("m").statistics.accepted
    answer, _ = runner.run(answered(application, "/v2/models/m/infer", v2(DATA, datatype="INT32")))
    assert answer.status == 400
    assert b"must be integers" in answer.chunks[0]
    assert application._engine.servable("m").statistics.accepted == before + 1


def test_a_small_request_takes_no_turn_of_the_thread(runner: asyncio.Runner, application: V2Application) -> None:
    content = v2([[0.5, 1.5]])
    assert len(json.dumps(content)) < SLOW_BYTES
    decoders = [thread for thread in threading.enumerate() if thread.name.startswith("side")]
    answer, _ = runner.run(answered(application, "/v2/models/m/infer", content))
    assert answer.status == 200
    assert [thread for thread in threading.enumerate() if thread.name.startswith("side")] == decoders


def test_a_request_whose_client_left_is_not_begun(runner: asyncio.Runner) -> None:
    async def play() -> None:
        began: list[str] = []
        release = threading.Event()
        first = Decoding(release.wait, lambda _found: None, began_refused, began_refused)
        second = Decoding(
            lambda: began.append("decoded"), lambda _found: began.append("begun"), began_refused, began_refused
        )
        second.cancel()
        await asyncio.sleep(0)  # the thread's queue has heard of it
        release.set()
        third: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        Decoding(lambda: None, third.set_result, began_refused, began_refused)
        await asyncio.wait_for(third, 10)
        first.cancel()
        assert began == []

    def began_refused(error: ServingError) -> None:
        raise AssertionError from error

    runner.run(play())
