"""A model in the runtime, with companions that are programs beside it, behind one proxy."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.programs import MODEL, Replica, program, replica

ROW = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 8], "data": [1] * 16}]}
DOUBLING = """
from typing import NamedTuple

from fairlead_python import FP32


class Doubled(NamedTuple):
    y: FP32[3]


class Transformer:
    max_batch_size = 4

    def preprocess(self, x: FP32[8]) -> dict:
        return {"x": x}

    def postprocess(self, outputs) -> Doubled:
        return Doubled(outputs["y"] * 2)
"""


def environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}


def runtime(folder: Path) -> dict[str, Any]:
    repository = folder / "models"
    onnx_models.mlp(repository / MODEL / "1" / "model.onnx")
    command = [sys.executable, "-m", "serving_runtime", f"--model-repository={repository}"]
    return {"command": command, "folder": str(folder), "env": environment(), "runtime": True}


@contextmanager
def channel(served: Replica) -> Iterator[grpc.Channel]:
    at = served.place("grpc")
    with grpc.insecure_channel(f"unix:{at}" if isinstance(at, Path) else f"127.0.0.1:{at}") as opened:
        yield opened


def outputs_over_grpc(served: Replica) -> list[float]:
    request = proto.message("inference.ModelInferRequest")(model_name=MODEL)
    tensor = request.inputs.add(name="x", datatype="FP32", shape=[2, 8])
    tensor.contents.fp32_contents.extend([1.0] * 16)
    with channel(served) as opened:
        infer = opened.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        answer = proto.message("inference.ModelInferResponse").FromString(
            infer(request.SerializeToString(), timeout=60)
        )
    return [float(value) for value in np.frombuffer(answer.raw_output_contents[0], "<f4")]


def outputs(content: Any) -> list[float]:
    return [float(value) for value in content["outputs"][0]["data"]]


def test_a_model_with_an_explainer_serves_grpc_and_metrics_itself(tmp_path: Path) -> None:
    infer = f"/v2/models/{MODEL}/infer"
    explainer = program(tmp_path, "explainer", CALLS=infer)
    with replica(tmp_path, {"predictor": runtime(tmp_path), "explainer": explainer}) as served:
        served.until_ready()
        answer = served.infer(json.dumps(ROW).encode())
        assert (answer.status, answer.headers["fairlead-rows"]) == (200, "2")
        explained = served.ask("POST", f"/v1/models/{MODEL}:explain", json.dumps(ROW).encode()).json()
        assert explained["role"] == "explainer"
        assert outputs(explained["behind"]) == outputs(answer.json())
        assert outputs_over_grpc(served) == pytest.approx(outputs(answer.json()))
        page = served.ask("GET", "/metrics", endpoint="metrics").text
        assert f'nv_inference_count{{model="{MODEL}",version="1"}} 6' in page, "of three requests of two rows"
        served.terminate()
        assert served.ended() == 0


def test_a_model_on_ports_is_reached_through_its_transformer_over_http_and_grpc(tmp_path: Path) -> None:
    code = tmp_path / "doubling"
    code.mkdir()
    (code / "model.py").write_text(DOUBLING)
    words = ["--http_port=$(PORT)", "--grpc_port=$(GRPC_PORT)", "--metrics_port=0", "--address=127.0.0.1"]
    command = [sys.executable, "-m", "serving_runtime", "transformer", ".", *words]
    transformer = {"command": command, "folder": str(code), "env": environment()}
    with replica(tmp_path, {"predictor": runtime(tmp_path), "transformer": transformer}, on_ports=True) as served:
        served.until_ready()
        answer = served.infer(json.dumps(ROW).encode())
        assert answer.status == 200, answer.text
        assert "fairlead-rows" not in answer.headers
        assert outputs_over_grpc(served) == pytest.approx(outputs(answer.json()))
        page = served.ask("GET", "/metrics", endpoint="metrics").text
        assert f'nv_inference_count{{model="{MODEL}",version="1"}} 4' in page
        with channel(served) as opened:
            live = opened.unary_unary("/inference.GRPCInferenceService/ServerLive")
            live(proto.message("inference.ServerLiveRequest")().SerializeToString(), timeout=60)
            served.terminate()
            assert served.ended() == 0
