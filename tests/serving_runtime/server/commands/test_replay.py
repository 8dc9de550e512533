"""Recorded requests are answered again by the command as a server answered them, whatever form they had."""

import base64
import json
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.common.request import InferRequest, Tensor
from serving_runtime.server.commands.replay import request_of
from serving_runtime.telemetry.tap.events import tensor
from serving_runtime.telemetry.tap.writing import written
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import server


def replay(model: Path, *lines: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit code and what was printed."""
    asked = "".join(json.dumps(line) + "\n" for line in lines)
    command = [sys.executable, "-m", "serving_runtime", "replay", str(model)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    onnx_models.mlp(onnx_models.configure(root / "mlp", "max_batch_size: 8 dynamic_batching { }") / "1" / "model.onnx")
    return root


def test_what_a_tap_recorded_is_answered_in_the_same_way(repository: Path, tmp_path: Path) -> None:
    """V2 as JSON and in binary, V1, and a request that is refused."""
    file = tmp_path / "payloads.jsonl"
    x = {"name": "x", "shape": [1, 8], "datatype": "FP32"}
    content = np.linspace(-1, 1, 8, dtype=np.float32).tobytes()
    head = json.dumps({"inputs": [{**x, "parameters": {"binary_data_size": len(content)}}]}).encode()
    with server(repository, f"--payload-tap={file.as_uri()}", scratch=tmp_path) as target, httpx.Client() as client:
        infer = f"{target.url}/v2/models/mlp/infer"
        assert client.post(infer, json={"inputs": [{**x, "data": [0.1] * 8}]}).status_code == 200
        binary = {"Inference-Header-Content-Length": str(len(head))}
        assert client.post(infer, content=head + content, headers=binary).status_code == 200
        v1 = client.post(f"{target.url}/v1/models/mlp:predict", json={"instances": [[0.3] * 8, [0.4] * 8]})
        assert v1.status_code == 200
        wrong = {"inputs": [{**x, "shape": [1, 7], "data": [0.1] * 7}]}
        assert client.post(infer, json=wrong).status_code == 400
        target.terminate()
        assert target.process.wait(30) == 0
    events = [json.loads(line) for line in file.read_text().splitlines()]
    requests, answers = events[::2], events[1::2]
    lines = [{"id": event["requestid"], "data": event["data"]} for event in requests]
    code, (ready, *replayed) = replay(repository / "mlp", *lines)
    assert (code, ready) == (0, {"schema": "fairlead.replay/v1", "ready": True})
    assert [event["requestid"] for event in replayed] == [event["requestid"] for event in requests]
    assert [event["data"] for event in replayed] == [event["data"] for event in answers]
    assert [event.get("errorcode") for event in replayed] == [None, None, None, "INVALID_ARGUMENT"]
    assert [event.get("modelversion") for event in replayed[:3]] == ["1"] * 3


@contextmanager
def listening(model: Path, scratch: Path, *flags: str) -> Iterator["tuple[subprocess.Popen[str], str]"]:
    """Run the command over HTTP; gives the process and its address once it listens."""
    port_file = scratch / f"port-{len(list(scratch.iterdir()))}.json"
    where = ["--http-port=0", "--http-address=127.0.0.1", f"--port-file={port_file}"]
    command = [sys.executable, "-m", "serving_runtime", "replay", str(model), *where, *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 60
            while not port_file.exists():
                assert process.poll() is None, "it ended"
                assert time.monotonic() < deadline, "it does not listen"
                time.sleep(0.01)
            yield process, f"http://127.0.0.1:{json.loads(port_file.read_text())['http']}"
        finally:
            process.kill()


def test_over_http_answers_are_those_of_the_pipe(repository: Path, tmp_path: Path) -> None:
    inputs = [{"name": "x", "shape": [1, 8], "datatype": "FP32", "data": [0.1] * 8}]
    wrong = [{"name": "x", "shape": [1, 7], "datatype": "FP32", "data": [0.1] * 7}]
    lines = [{"id": "a", "data": {"inputs": inputs}}, {"id": "b", "data": {"inputs": wrong}}]
    _, (_, *piped) = replay(repository / "mlp", *lines)
    with listening(repository / "mlp", tmp_path) as (process, url), httpx.Client(base_url=url) as client:
        assert client.get("/v2/health/ready").status_code == 200
        answers = [client.post("/replay", json=line).raise_for_status().json() for line in lines]
        for found in (answers, piped):
            for each in found:
                each.pop("time")
        assert answers == piped
        assert client.post("/replay", content=b"{}").json()["error"].startswith("this is no recorded request")
        assert client.post("/v2/models/mlp/infer", json={"inputs": inputs}).status_code == 404
        process.terminate()
        assert process.wait(30) == 0


def test_over_http_it_ends_once_nobody_asks_any_more(repository: Path, tmp_path: Path) -> None:
    with listening(repository / "mlp", tmp_path, "--idle-timeout-secs=1") as (process, _):
        assert process.wait(60) == 0


def test_over_http_a_model_that_cannot_be_served_says_why_in_its_last_line(tmp_path: Path) -> None:
    broken = tmp_path / "repository" / "m" / "1" / "model.onnx"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no model")
    command = [sys.executable, "-m", "serving_runtime", "replay", str(broken.parents[1]), "--http-port=0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "m" in done.stderr.splitlines()[-1]


def test_a_model_that_cannot_be_served_says_why(tmp_path: Path) -> None:
    broken = tmp_path / "repository" / "m" / "1" / "model.onnx"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no model")
    code, (said,) = replay(tmp_path / "repository" / "m", {"id": "a", "data": {"inputs": []}})
    assert code == 2
    assert "m" in said["error"]


@pytest.mark.parametrize(
    ("datatype", "array"),
    [
        ("FP32", np.array([[1.5, -2]], np.float32)),
        ("FP32", np.array([np.nan, np.inf], np.float32)),
        ("FP16", np.array([1, 2, 3], np.float16)),
        ("INT64", np.array([2**62], np.int64)),
        ("BOOL", np.array([True, False])),
        ("BYTES", np.array([b"text", b"\xff\x00"], object)),
        ("BYTES", np.array([b"text", b""], object)),
    ],
)
def test_a_tensor_comes_back_as_it_was_recorded(datatype: str, array: Any) -> None:
    item = Tensor("x", DATATYPES[datatype], array)
    data = json.loads(written({"inputs": [tensor(item)]}))
    (back,) = request_of("m", data).inputs
    assert (back.name, back.datatype, back.array.shape) == ("x", item.datatype, array.shape)
    assert list(map(repr, back.array.flat)) == list(map(repr, array.flat))


def test_what_else_a_request_says_comes_back() -> None:
    data = {
        "id": "7",
        "parameters": {"sequence_id": 3},
        "inputs": [],
        "outputs": [{"name": "y", "parameters": {"classification": 2}}, {"name": "z"}],
    }
    assert request_of("m", data) == InferRequest(
        "m", "", (), outputs=("y", "z"), id="7", parameters={"sequence_id": 3}, classes={"y": 2}
    )


@pytest.mark.parametrize("data", [[], ["*"], [base64.b64encode(struct.pack("<f", 1.0)).decode()]])
def test_a_tensor_that_is_no_base64_of_its_shape_is_refused(data: list[str]) -> None:
    item = {"name": "x", "datatype": "FP16", "shape": [1], "parameters": {"encoding": "base64"}, "data": data}
    with pytest.raises(InvalidArgument, match="'x'"):
        request_of("m", {"inputs": [item]})
