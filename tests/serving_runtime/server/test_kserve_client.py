"""KServe's Python client, unmodified and in a virtual environment of its own, against a real server."""

import subprocess
from pathlib import Path

import pytest

from tests.servers.clients import kserve_python
from tests.servers.parts import MissingPartError, skip_or_fail
from tests.serving_runtime._support.processes import ServerProcess

PRELUDE = """
import asyncio, sys
import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest
from kserve.inference_client import RESTConfig
http, grpc = sys.argv[1:]
x = np.arange(16, dtype=np.float32).reshape(2, 8) / 10

def request(binary=True):
    tensor = InferInput("x", list(x.shape), "FP32")
    tensor.set_data_from_numpy(x, binary_data=binary)
    return InferRequest("mlp", [tensor], request_id="a7")
"""

REST = """
async def main():
    client = InferenceRESTClient(RESTConfig(protocol="v2", timeout=10, retries=0))
    url = f"http://127.0.0.1:{http}"
    assert await client.is_server_live(url) and await client.is_server_ready(url)
    assert await client.is_model_ready(url, "mlp") and not await client.is_model_ready(url, "nobody")
    answers = [await client.infer(url, request(binary), model_name="mlp") for binary in (True, False)]
    for answer in answers:
        assert answer.id == "a7" and answer.model_name == "mlp", answer
        assert answer.outputs[0].as_numpy().shape == (2, 3)
    np.testing.assert_allclose(answers[0].outputs[0].as_numpy(), answers[1].outputs[0].as_numpy(), rtol=1e-6)
    try:
        await client.infer(url, request(), model_name="nobody")
        raise AssertionError("answered")
    except Exception as error:
        assert "404" in repr(error) or "unknown model" in repr(error), repr(error)
    await client.close()
asyncio.run(main())
"""

GRPC = """
async def main():
    client = InferenceGRPCClient(f"127.0.0.1:{grpc}", timeout=10, retries=0)
    assert await client.is_server_live() and await client.is_server_ready()
    assert await client.is_model_ready("mlp")
    answer = await client.infer(request())
    assert answer.id == "a7" and answer.outputs[0].as_numpy().shape == (2, 3), answer
    await client.close()
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return kserve_python()
    except MissingPartError as missing:
        skip_or_fail(missing)


@pytest.mark.feature("P1", "P2", "P3", "P6", "P7", "E1")
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(REST, id="rest"),
        pytest.param(GRPC, id="grpc"),
    ],
)
def test_kserves_client(python: Path, shared: ServerProcess, steps: str) -> None:
    ports = [str(shared.http), str(shared.grpc)]
    command = [str(python), "-W", "ignore", "-c", PRELUDE + steps, *ports]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
