"""An ensemble all the way: pushed with the models of its steps, checked, served under the service's name."""

import json

import httpx
import numpy as np
import pytest

from tests.e2e.harness import Platform
from tests.serving_runtime import onnx_models

pytestmark = pytest.mark.e2e

STEP = "max_batch_size: 8 dynamic_batching { }"
PIPELINE = """
platform: "ensemble" max_batch_size: 8
input { name: "x" data_type: TYPE_INT32 dims: 4 }
input { name: "y" data_type: TYPE_INT32 dims: 4 }
output { name: "total" data_type: TYPE_INT32 dims: 4 }
ensemble_scheduling {
  step {
    model_name: "first" model_version: -1
    input_map { key: "a" value: "x" } input_map { key: "b" value: "y" } output_map { key: "sum" value: "between" }
  }
  step {
    model_name: "second" model_version: -1
    input_map { key: "a" value: "between" } input_map { key: "b" value: "x" } output_map { key: "sum" value: "total" }
  }
}
"""
SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: sums}
spec:
  predictor:
    model:
      modelFormat: {name: onnx}
      storageUri: models:/sums/1
"""


def test_it_answers_under_the_services_name_and_its_steps_do_not(platform: Platform) -> None:
    folder = platform.home.parent
    for name in ("first", "second"):
        onnx_models.add(onnx_models.configure(folder / "sums" / name, STEP) / "1" / "model.onnx")
    onnx_models.configure(folder / "sums" / "pipeline", PIPELINE)
    (folder / "sums.yaml").write_text(SERVICE)
    pushed = platform.fairlead("models", "push", "sums", "--name", "sums", "--wait", "-o", "json")
    version = json.loads(pushed.stdout)
    assert (version["status"], version["platform"]) == ("READY", "ensemble")
    assert [tensor["name"] for tensor in version["signature"]["inputs"]] == ["x", "y"]

    platform.fairlead("services", "apply", "-f", "sums.yaml", "--wait")

    x, y = np.arange(8).reshape(2, 4), np.arange(8, 16).reshape(2, 4)
    tensors = [
        {"name": name, "datatype": "INT32", "shape": [2, 4], "data": values.ravel().tolist()}
        for name, values in (("x", x), ("y", y))
    ]
    url = f"http://{platform.gateway}/serving/default/sums/v2/models"
    answer = httpx.post(f"{url}/sums/infer", json={"inputs": tensors}, timeout=30)
    assert answer.status_code == 200, answer.text
    assert answer.json()["model_name"] == "sums"
    (total,) = answer.json()["outputs"]
    assert (total["name"], total["shape"]) == ("total", [2, 4])
    assert total["data"] == (2 * x + y).ravel().tolist()
    for hidden in ("first", "second", "pipeline"):
        refused = httpx.post(f"{url}/{hidden}/infer", json={"inputs": tensors}, timeout=30)
        assert refused.status_code == 404, hidden
    platform.fairlead("services", "delete", "sums")
