"""A real server stays within its memory, and gives it back."""

import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

import grpc
import httpx
import numpy as np
import pytest

from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.http_bodies import body
from tests.serving_runtime._support.processes import ServerProcess, command, server

MIB = 2**20
SIZE = 2048
MODEL_BYTES = SIZE * SIZE * 4  # 16 MiB


def repository(root: Path, *names: str) -> Path:
    for name in names:
        onnx_models.mlp(root / "models" / name / "1" / "model.onnx", (SIZE, SIZE))
    return root / "models"


def memory_bytes(process: ServerProcess, field: str) -> int:
    """Return VmRSS (now) or VmHWM (the most it ever was) of the server."""
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) * 1024


def test_ten_models_are_served_in_the_memory_of_three(tmp_path: Path) -> None:
    """On demand, over both protocols: every request is answered, and the process never takes more than it may."""
    names = [f"m{number}" for number in range(10)]
    budget = int(3.4 * MODEL_BYTES)
    flags = ["--load-on-demand", f"--model-memory-budget-bytes={budget}"]
    message = proto.ModelInferRequest()
    message.inputs.add(name="x", datatype="FP32", shape=[1, SIZE])
    message.raw_input_contents.append(np.ones((1, SIZE), "f4").tobytes())
    content, headers = body(SIZE)
    with server(repository(tmp_path, *names), *flags, scratch=tmp_path) as process:
        empty = memory_bytes(process, "VmHWM")
        with httpx.Client(base_url=process.url, timeout=30) as client:
            for name in names:
                answer = client.post(f"/v2/models/{name}/infer", content=content, headers=headers)
                assert answer.status_code == 200, answer.text
        with grpc.insecure_channel(f"127.0.0.1:{process.grpc}") as channel:
            infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            for message.model_name in names:
                infer(message.SerializeToString(), timeout=30)
            stream = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
            requests = []
            for message.model_name in names:
                requests.append(message.SerializeToString())
            answers = [
                proto.message("inference.ModelStreamInferResponse").FromString(answer)
                for answer in stream(iter(requests))
            ]
            assert [(answer.error_message, answer.infer_response.model_name) for answer in answers] == [
                ("", name) for name in names
            ]
        library = 48 * MIB  # ONNX Runtime itself, and what requests and clients take
        assert memory_bytes(process, "VmHWM") - empty < budget + library < len(names) * MODEL_BYTES


@pytest.mark.feature("E7")
def test_loading_and_unloading_thirty_times_leaves_nothing_behind(tmp_path: Path) -> None:
    """By the median of ten rounds each: what the C library keeps for later varies by round, but does not grow."""
    content, headers = body(SIZE)
    with server(repository(tmp_path, "m"), "--model-control-mode=explicit", scratch=tmp_path) as process:
        loaded, unloaded = [], []
        with httpx.Client(base_url=process.url, timeout=30) as client:
            for _ in range(30):
                assert client.post("/v2/repository/models/m/load").status_code == 200
                assert client.post("/v2/models/m/infer", content=content, headers=headers).status_code == 200
                loaded.append(memory_bytes(process, "VmRSS"))
                assert client.post("/v2/repository/models/m/unload").status_code == 200
                until_unloaded(client)
                unloaded.append(memory_bytes(process, "VmRSS"))
    assert median(unloaded[20:]) - median(unloaded[:10]) < MODEL_BYTES / 2
    assert median(loaded) - median(unloaded) > MODEL_BYTES / 2


def until_unloaded(client: httpx.Client) -> None:
    deadline = time.monotonic() + 20
    while client.post("/v2/repository/index").json()[0]["state"] != "UNAVAILABLE":
        assert time.monotonic() < deadline


def test_a_budget_that_is_too_small_ends_the_start_with_figures(tmp_path: Path) -> None:
    root = repository(tmp_path, "m")
    with server(root, "--model-memory-budget-bytes=1000000", "--exit-on-error=false", scratch=tmp_path) as process:
        index = httpx.post(f"{process.url}/v2/repository/index").json()
        assert [entry["state"] for entry in index] == ["UNAVAILABLE"]
        assert (
            "model 'm' needs 36.8 MiB of memory and never fits: all models together may take 1.0 MiB"
            in index[0]["reason"]
        )


def test_without_a_flag_the_budget_is_found_out(tmp_path: Path) -> None:
    with server(repository(tmp_path, "m"), scratch=tmp_path) as process:
        stats = httpx.get(f"{process.url}/v2/models/m/stats").json()["model_stats"][0]
        assert stats["memory_usage"][0]["byte_size"] >= MODEL_BYTES
        assert process.metric("fairlead_model_memory_bytes", model="m") == stats["memory_usage"][0]["byte_size"]


def test_loading_on_demand_excludes_loading_by_order(tmp_path: Path) -> None:
    flags = command(repository(tmp_path, "m"), "--load-on-demand", "--model-control-mode=explicit")
    done = subprocess.run(flags, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "take one" in done.stderr) == (1, True)


async def test_every_kind_of_inference_request_loads_its_model(tmp_path: Path) -> None:
    names = ["json", "raw", "events", "v1"]
    for name in names:
        onnx_models.mlp(tmp_path / "models" / name / "1" / "model.onnx", (4, 3))
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    with server(tmp_path / "models", "--load-on-demand", scratch=tmp_path) as process:
        async with httpx.AsyncClient(base_url=process.url, timeout=30) as client:

            async def asked(path: str, **content: Any) -> str:
                answer = await client.post(path, **content)
                assert answer.status_code == 200, answer.text
                return answer.text

            hint = (await client.get("/v2/models/json")).json()["error"]
            assert hint == "model 'json' is not ready: it is unloaded; its first inference request loads it"
            assert '"shape":[1,3]' in await asked("/v2/models/json/infer", json={"inputs": [tensor]})
            raw = {"Inference-Header-Content-Length": "0"}
            await asked("/v2/models/raw/infer", content=np.ones(4, "f4").tobytes(), headers=raw)
            assert "data:" in await asked("/v2/models/events/infer_stream", json={"inputs": [tensor]})
            assert "predictions" in await asked("/v1/models/v1:predict", json={"instances": [[1, 2, 3, 4]]})
            index = (await client.post("/v2/repository/index", json={"ready": True})).json()
            assert sorted(entry["name"] for entry in index) == sorted(names)
