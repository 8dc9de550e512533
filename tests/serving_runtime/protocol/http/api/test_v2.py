"""Which infer paths are remembered with the heads of their requests."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from serving_runtime.common.errors import NotFound
from serving_runtime.protocol.http.api.v2 import V2Application
from tests.serving_runtime._support.applications import handled, identity_application


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def application(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[V2Application]:
    with identity_application(runner, tmp_path_factory.mktemp("repository")) as application:
        yield application


async def infer(application: V2Application, path: str) -> int:
    body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1] * 4}]}).encode()
    return (await handled(application, path, body)).status


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
