"""Which infer paths are remembered with the heads of their requests."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from serving_runtime.engine.engine import Engine
from serving_runtime.engine.load_settings import LoadSettings
from serving_runtime.errors import NotFound
from serving_runtime.protocol.http.message import Request, Response
from serving_runtime.protocol.http.v2 import V2Application
from tests.serving_runtime import onnx_models


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def application(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[V2Application]:
    root = tmp_path_factory.mktemp("repository")
    onnx_models.identity(root / "m" / "1" / "model.onnx")

    async def start() -> Engine:
        engine = Engine([root], LoadSettings())
        assert await engine.load_all() == []
        return engine

    engine = runner.run(start())
    yield V2Application(engine)
    engine.close()


async def infer(application: V2Application, path: str) -> int:
    body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1] * 4}]}).encode()
    answered: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    application.handle(Request(b"POST", path.encode(), body, 0, None), answered.set_result)
    return (await asyncio.wait_for(answered, 10)).status


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        pytest.param("/v2/models/m/infer", True, id="a model's"),
        pytest.param("/v2/models/m/versions/1/infer", True, id="a version's"),
        pytest.param("/v2/models/%6D/infer", False, id="an escaped one"),
        pytest.param("/v2/models/m/infer?x=1", False, id="one with a query"),
    ],
)
def test_a_plain_infer_path_is_remembered(
    runner: asyncio.Runner, application: V2Application, path: str, kept: bool
) -> None:
    for _ in range(2):
        assert runner.run(infer(application, path)) == 200
    assert (path.encode() in application._codecs) is kept


def test_a_path_of_a_model_that_is_not_there_is_not_remembered(
    runner: asyncio.Runner, application: V2Application
) -> None:
    with pytest.raises(NotFound):
        runner.run(infer(application, "/v2/models/nobody/infer"))
    assert b"/v2/models/nobody/infer" not in application._codecs
