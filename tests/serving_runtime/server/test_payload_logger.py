"""The payload logger of a real server, with a real receiver: what it gets, and that it can slow nobody."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.event_receiver import Receiver, receiving
from tests.serving_runtime._support.processes import ServerProcess, command, server

METRIC = "fairlead_payload_logger_events_total"
GRPC = """
import sys
import numpy as np
import tritonclient.grpc as v2
client = v2.InferenceServerClient(f"127.0.0.1:{sys.argv[1]}")
x = v2.InferInput("x", [1, 8], "FP32")
x.set_data_from_numpy(np.full((1, 8), 0.5, np.float32))
client.infer("mlp", [x], headers={"x-request-id": "by-grpc"})
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    onnx_models.mlp(onnx_models.configure(root / "mlp", "max_batch_size: 8") / "1" / "model.onnx")
    return root


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


def infer(target: ServerProcess, request_id: str) -> httpx.Response:
    x = {"name": "x", "shape": [1, 8], "datatype": "FP32", "data": [0.5] * 8}
    url = f"{target.url}/v2/models/mlp/infer"
    return httpx.post(url, json={"inputs": [x]}, headers={"x-request-id": request_id}, timeout=30, trust_env=False)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)


def test_every_request_and_answer_is_posted_of_both_protocols(
    repository: Path, tmp_path: Path, receiver: Receiver
) -> None:
    flags = (f"--payload-logger={receiver.url}", "--payload-logger-attribute=inferenceservicename=digits")
    with server(repository, *flags, scratch=tmp_path) as target:
        answer = infer(target, "by-http")
        subprocess.run([sys.executable, "-c", GRPC, str(target.grpc)], check=True, timeout=60)
        until(lambda: target.metric(METRIC, result="written") == 4)
    posts = {
        (headers["ce-id"], headers["ce-type"].rpartition(".")[2]): (headers, body) for headers, body in receiver.posts
    }
    assert set(posts) == {(name, kind) for name in ("by-http", "by-grpc") for kind in ("request", "response")}
    headers, body = posts["by-http", "response"]
    assert json.loads(body)["outputs"][0]["data"] == answer.json()["outputs"][0]["data"]
    assert (headers["ce-inferenceservicename"], headers["ce-modelversion"]) == ("digits", "1")
    assert json.loads(posts["by-grpc", "request"][1])["inputs"][0]["data"] == [0.5] * 8


@pytest.mark.parametrize("verbose", ["0", "1"])
def test_no_event_writes_a_line_into_the_log(
    repository: Path, tmp_path: Path, receiver: Receiver, verbose: str
) -> None:
    log = tmp_path / "log"
    flags = (f"--payload-logger={receiver.url}", f"--log-file={log}", f"--log-verbose={verbose}")
    with server(repository, *flags, scratch=tmp_path) as target:
        infer(target, "quiet")
        until(lambda: target.metric(METRIC, result="written") == 2)
    assert [line for line in log.read_text().splitlines() if "httpx" in line or "httpcore" in line] == []


@pytest.mark.parametrize("mode", ["request", "response"])
def test_a_mode_tells_only_one_of_them(repository: Path, tmp_path: Path, receiver: Receiver, mode: str) -> None:
    flags = (f"--payload-logger={receiver.url}", f"--payload-logger-mode={mode}")
    with server(repository, *flags, scratch=tmp_path) as target:
        for name in "ab":
            infer(target, name)
        until(lambda: target.metric(METRIC, result="written") == 2)
    assert {headers["ce-type"].rpartition(".")[2] for headers, _ in receiver.posts} == {mode}


def test_a_receiver_that_never_answers_slows_nobody_and_what_is_lost_is_counted(
    repository: Path, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        flags = (f"--payload-logger=http://127.0.0.1:{port}/", "--payload-logger-max-pending-bytes=20000")
        with server(repository, *flags, scratch=tmp_path) as target:
            assert all(infer(target, str(number)).status_code == 200 for number in range(50))
            assert target.metric(METRIC, result="dropped") > 0
            assert target.metric(METRIC, result="written") == 0


def test_a_tap_and_a_logger_record_side_by_side(repository: Path, tmp_path: Path, receiver: Receiver) -> None:
    file = tmp_path / "tap.jsonl"
    flags = (f"--payload-logger={receiver.url}", f"--payload-tap={file.as_uri()}")
    with server(repository, *flags, scratch=tmp_path) as target:
        infer(target, "both")
        until(lambda: target.metric(METRIC, result="written") == 2)
        until(lambda: target.metric("fairlead_payload_tap_events_total", result="written") == 2)
    assert {json.loads(line)["requestid"] for line in file.read_text().splitlines()} == {"both"}


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("--payload-logger=ftp://host/x", "'ftp://host/x' is not a URL such as http://"),
        ("--payload-logger-mode=some", "invalid choice: 'some'"),
        ("--payload-logger-attribute=Name=x", "is not NAME=VALUE with a name of lower-case letters and digits"),
    ],
)
def test_a_logger_that_cannot_be_is_one_clear_line_and_exit_1(repository: Path, flag: str, sentence: str) -> None:
    done = subprocess.run(command(repository, flag), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert sentence in done.stderr
