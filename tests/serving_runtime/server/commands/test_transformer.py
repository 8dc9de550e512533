"""A transformer in Python before a predictor of another server, over the protocols that clients speak."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

TRANSFORMER = """
from typing import NamedTuple

import numpy as np
from fairlead_python import BYTES, FP32, Refused


class Verdict(NamedTuple):
    best: FP32[1]
    said: BYTES[1]


class Transformer:
    max_batch_size = 4

    def preprocess(self, text: BYTES[1]) -> dict:
        rows = [[float(number) for number in one.split()] for one in text[:, 0]]
        if not all(rows):
            raise Refused("there are no numbers in it")
        return {"x": np.array(rows, np.float32)}

    def postprocess(self, outputs) -> Verdict:
        best = outputs["y"].max(axis=1, keepdims=True)
        return Verdict(best, np.array([[f"{value:.3f}".encode()] for value in best[:, 0]], object))
"""
STAGES = """
from fairlead_python import FP32

class Model:
    max_batch_size = 4

    def preprocess(self, x: FP32[2]):
        return x + 1

    def predict(self, payload):
        return {"doubled": payload * 2}

    def postprocess(self, payload) -> FP32[2]:
        return payload["doubled"] - 1
"""


@pytest.fixture
def predictor(tmp_path: Path) -> Iterator[ServerProcess]:
    onnx_models.mlp(tmp_path / "models" / "mlp" / "1" / "model.onnx")
    with server(tmp_path / "models", scratch=tmp_path) as process:
        yield process


@contextmanager
def transforming(folder: Path, code: str, *flags: str) -> Iterator[str]:
    """Run a transformer; gives the URL of its HTTP endpoint."""
    (folder / "own").mkdir()
    (folder / "own" / "model.py").write_text(code)
    ports = folder / "transformer-ports"
    command = [sys.executable, "-m", "serving_runtime", "transformer", str(folder / "own"), f"--port-file={ports}"]
    command += ["--address=127.0.0.1", "--http_port=0", "--grpc_port=0", "--metrics_port=0", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            deadline = time.monotonic() + 120
            while not ports.exists():
                assert process.poll() is None, process.communicate()[0]
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield f"http://127.0.0.1:{json.loads(ports.read_text())['http']}"
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.communicate()


def test_what_clients_send_is_made_into_the_predictors_and_back(tmp_path: Path, predictor: ServerProcess) -> None:
    rows = np.linspace(-1, 1, 16, dtype="f4").reshape(2, 8)
    x = {"name": "x", "datatype": "FP32", "shape": [2, 8], "data": rows.ravel().tolist()}
    plain = httpx.post(f"{predictor.url}/v2/models/mlp/infer", json={"inputs": [x]}, timeout=60).json()
    best = np.array(plain["outputs"][0]["data"]).reshape(2, 3).max(axis=1)
    texts = [" ".join(map(str, row)) for row in rows.tolist()]
    host = predictor.url.removeprefix("http://")
    with transforming(tmp_path, TRANSFORMER, "--model_name=mlp", f"--predictor_host={host}") as url:
        assert httpx.get(f"{url}/v2/health/ready", timeout=60).status_code == 200
        text = {"name": "text", "datatype": "BYTES", "shape": [2, 1], "data": texts}
        found = httpx.post(f"{url}/v2/models/mlp/infer", json={"inputs": [text]}, timeout=60).json()
        assert found["outputs"][0]["data"] == pytest.approx(best.tolist(), abs=1e-5)
        predictions = httpx.post(f"{url}/v1/models/mlp:predict", json={"instances": texts}, timeout=60).json()
        assert [row["said"] for row in predictions["predictions"]] == [[f"{value:.3f}"] for value in best]

        def refused(data: str) -> tuple[int, str]:
            text = {"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": [data]}
            answer = httpx.post(f"{url}/v2/models/mlp/infer", json={"inputs": [text]}, timeout=60)
            return answer.status_code, answer.json()["error"]

        assert refused("") == (400, "there are no numbers in it")
        status, said = refused("1 2 3")
        assert status == 400, "what the predictor refuses is the client's mistake here too"
        assert "[1,3]" in said.replace(" ", "")
        predictor.terminate()
        predictor.process.wait(60)
        status, said = refused(texts[0])
        assert status == 503
        assert said.startswith(f"the predictor at {host} does not answer: ")


def test_a_model_of_its_own_has_the_same_stages(tmp_path: Path) -> None:
    (tmp_path / "models" / "m" / "1").mkdir(parents=True)
    (tmp_path / "models" / "m" / "1" / "model.py").write_text(STAGES)
    (tmp_path / "models" / "m" / "config.pbtxt").write_text('backend: "python"')
    with server(tmp_path / "models", "--allow-python-models=true", scratch=tmp_path) as process:
        answer = httpx.post(f"{process.url}/v1/models/m:predict", json={"instances": [[1, 2], [3, 4]]}, timeout=60)
        assert answer.json() == {"predictions": [[3, 5], [7, 9]]}


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        pytest.param(None, "there is no model.py in", id="no file"),
        pytest.param(
            "class Transformer:\n    def preprocess(self): ...",
            "a model without predict() needs preprocess() and postprocess()",
            id="outputs that nobody knows",
        ),
        pytest.param(
            "from fairlead_python import FP32\nclass Transformer:\n"
            "    def preprocess(self, x): ...\n    def postprocess(self, y) -> FP32[1]: ...",
            "preprocess() has parameter 'x' without an annotation",
            id="no annotation",
        ),
    ],
)
def test_a_transformer_that_cannot_be_served_is_refused_in_one_sentence(
    tmp_path: Path, code: str | None, sentence: str
) -> None:
    if code is not None:
        (tmp_path / "model.py").write_text(code)
    named = ["--model_name=m", "--predictor_host=127.0.0.1:1", "--http_port=0", "--grpc_port=0", "--metrics_port=0"]
    command = [sys.executable, "-m", "serving_runtime", "transformer", str(tmp_path), *named]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert sentence in done.stderr.splitlines()[-1]


def test_a_class_without_predict_outside_of_a_transformer_says_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.py").write_text(TRANSFORMER)
    (tmp_path / "m" / "config.pbtxt").write_text('backend: "python"')
    command = [
        sys.executable,
        "-m",
        "serving_runtime",
        "profile",
        str(tmp_path / "m"),
        "--allow-python-models",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "start it by fairlead-serve transformer" in json.loads(done.stdout)["error"]
