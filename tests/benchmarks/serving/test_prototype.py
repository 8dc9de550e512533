import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.serving import models, requests
from benchmarks.serving.peers.base import Running
from benchmarks.serving.peers.limits import Prototype
from benchmarks.serving.processes import any_core

MODEL = models.MODELS["mlp_small"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("prototype")
    models.save("mlp_small", folder / "models" / "mlp_small.onnx")
    prototype = Prototype(cores=any_core())
    running = prototype.start(Path(sys.executable), folder / "models", folder)
    yield running
    running.process.stop()


def test_the_prototype_answers_http_and_grpc_with_what_the_model_makes(running: Running) -> None:
    assert running.http is not None
    assert running.grpc_port is not None
    url, body = running.http(MODEL)
    one, other = requests.post(url, body), requests.call(running.grpc_port, MODEL)
    assert one.shape == (10,)
    assert np.any(one)
    np.testing.assert_array_equal(one, other)
