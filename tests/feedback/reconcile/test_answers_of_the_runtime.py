"""What a real server's tap writes is kept with the classes and the parameters that its client saw and sent."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from feedback.models import Answer
from feedback.selectors.answers import answer_values
from integrations.clusters.base import Exchange
from integrations.clusters.payloads import take
from tests.deployments._support.platform import Platform
from tests.feedback._support.keeping import Keeping
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import server

ROWS = [[0.5] * 8, [-2.0, 1.0] * 4]


def recorded(folder: Path) -> Exchange:
    deadline = time.monotonic() + 20
    while not (found := take(folder, "")[0]):
        assert time.monotonic() < deadline, "the tap wrote nothing"
        time.sleep(0.05)
    (exchange,) = found
    return exchange


def test_an_answer_of_the_runtime_is_kept_as_its_client_saw_it(platform: Platform, tmp_path: Path) -> None:
    repository, taps = tmp_path / "repository", tmp_path / "taps"
    replica = taps / "digits-00001" / "0"
    replica.mkdir(parents=True)
    onnx_models.mlp(onnx_models.configure(repository / "mlp", "max_batch_size: 8") / "1" / "model.onnx")
    with server(repository, f"--payload-tap={replica.as_uri()}/", scratch=tmp_path) as target:
        x = {"name": "x", "shape": [2, 8], "datatype": "FP32", "data": ROWS}
        body: dict[str, Any] = {"parameters": {"site": "north", "age": 7}, "inputs": [x]}
        seen = httpx.post(f"{target.url}/v2/models/mlp/infer", json=body, headers={"X-Request-Id": "a"}, timeout=30)
        (output,) = seen.json()["outputs"]
        exchange = recorded(taps)
    keeping = Keeping(platform, keeps_inputs=True, parameters=["site", "age"])
    keeping.record(replace(exchange, at=platform.clock().timestamp() + 1))
    platform.turn()
    answer = Answer.objects.get()
    rows = np.reshape(output["data"], (2, -1))
    assert answer.top == [[int(np.argmax(row)), float(np.max(row))] for row in rows]
    assert answer.parameters == {"site": "north", "age": "7"}
    assert answer_values(answer)["inputs"]["x"]["data"] == [value for row in ROWS for value in row]
