"""The payload tap of a real server: both protocols, one sample on both sides of a mirror, no harm from its sink."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, command, server

CLIENT = httpx.Client(timeout=30)


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    CLIENT.close()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    onnx_models.mlp(onnx_models.configure(root / "mlp", "max_batch_size: 8 dynamic_batching { }") / "1" / "model.onnx")
    return root


@contextmanager
def tapped(repository: Path, file: Path, *flags: str) -> Iterator[ServerProcess]:
    with server(repository, f"--payload-tap={file.as_uri()}", *flags, scratch=file.parent) as process:
        yield process
        process.terminate()
        assert process.process.wait(30) == 0


def events(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def infer(target: ServerProcess, request_id: str, width: int = 8) -> httpx.Response:
    x = {"name": "x", "shape": [1, width], "datatype": "FP32", "data": [0.5] * width}
    headers = {"X-Request-Id": request_id}
    return CLIENT.post(f"{target.url}/v2/models/mlp/infer", json={"inputs": [x]}, headers=headers)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.05)


def test_requests_over_http_are_recorded_with_what_was_answered(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "payloads.jsonl"
    with tapped(repository, file) as target:
        answers = [infer(target, "good"), infer(target, "bad", width=7)]
        CLIENT.get(f"{target.url}/v2/models/mlp")
    asked, answered, refused, refusal = events(file)
    assert (asked["requestid"], asked["data"]["inputs"][0]["data"]) == ("good", [0.5] * 8)
    assert answered["data"]["outputs"][0]["data"] == answers[0].json()["outputs"][0]["data"]
    assert (answered["modelversion"], answered["source"].split("/")[1]) == ("1", "fairlead")
    assert refused["requestid"] == "bad"
    assert (refusal["errorcode"], refusal["data"]) == ("INVALID_ARGUMENT", answers[1].json())


GRPC = """
import sys
import numpy as np
import tritonclient.grpc as v2
client = v2.InferenceServerClient(f"127.0.0.1:{sys.argv[1]}")
x = v2.InferInput("x", [1, 8], "FP32")
x.set_data_from_numpy(np.full((1, 8), 0.5, np.float32))
client.infer("mlp", [x], headers={"x-request-id": "single"})
answers = []
client.start_stream(lambda result, error: answers.append(error or result), headers={"x-request-id": "stream"})
for _ in range(2):
    client.async_stream_infer("mlp", [x])
client.stop_stream()
assert len(answers) == 2, answers
"""


def test_requests_over_grpc_are_recorded_those_of_a_stream_by_number(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "payloads.jsonl"
    with tapped(repository, file) as target:
        subprocess.run([sys.executable, "-c", GRPC, str(target.grpc)], check=True, timeout=60)
    recorded = events(file)
    assert {event["requestid"] for event in recorded} == {"single", "stream.1", "stream.2"}
    assert len(recorded) == 6
    assert {tuple(event["data"]["inputs"][0]["data"]) for event in recorded[::2]} == {(0.5,) * 8}


def test_both_sides_of_a_mirror_record_the_same_requests(repository: Path, tmp_path: Path) -> None:
    files = [tmp_path / "stable" / "tap.jsonl", tmp_path / "shadow" / "tap.jsonl"]
    with ExitStack() as stack:
        sides = []
        for file in files:
            file.parent.mkdir()
            sides.append(stack.enter_context(tapped(repository, file, "--payload-tap-share=0.3")))
        for number in range(60):
            for side in sides:
                assert infer(side, f"request-{number}").status_code == 200
    stable, shadow = ({event["requestid"] for event in events(file)} for file in files)
    assert stable == shadow
    assert 0 < len(stable) < 60


def test_a_collector_that_is_not_there_harms_no_answer(repository: Path, tmp_path: Path) -> None:
    flags = ("--payload-tap=http://127.0.0.1:1/events", "--payload-tap-max-pending-bytes=20000")
    with server(repository, *flags, scratch=tmp_path) as target:
        assert all(infer(target, str(number)).status_code == 200 for number in range(50))
        name = "fairlead_payload_tap_events_total"
        counts = {result: target.metric(name, result=result) for result in ("dropped", "failed", "written")}
        assert counts["written"] == 0
        assert 0 < counts["dropped"] + counts["failed"] <= 100
        target.terminate()
        assert target.process.wait(30) == 0


def test_the_share_changes_while_requests_come_over_both_protocols(repository: Path, tmp_path: Path) -> None:
    """Without a share nothing is recorded; with one both protocols know their ids; the server is never restarted."""
    share, folder = tmp_path / "share", tmp_path / "spool"
    flags = (f"--payload-tap={folder.as_uri()}/", f"--payload-tap-share-file={share}")

    def recorded() -> set[str]:
        return {event["requestid"] for file in folder.glob("*.jsonl") for event in events(file)}

    with ExitStack() as stack:
        target = stack.enter_context(server(repository, *flags, scratch=tmp_path))
        assert infer(target, "before").status_code == 200
        share.write_text("1")
        until(lambda: bool(infer(target, "during")) and "during" in recorded())
        subprocess.run([sys.executable, "-c", GRPC, str(target.grpc)], check=True, timeout=60)
        until(lambda: recorded() == {"during", "single", "stream.1", "stream.2"})
        target.terminate()
        assert target.process.wait(30) == 0
    assert "before" not in recorded()


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("--payload-tap=ftp://host/x", "--payload-tap: 'ftp://host/x' is not a URL such as"),
        ("--payload-tap=file:///nowhere/at/all", "No such file or directory"),
        ("--payload-tap=https://host/x --payload-tap-ca-file=/nowhere", "--payload-tap: [Errno 2] No such file"),
        ("--payload-tap-share=1.5", "'1.5' is not a share from 0 to 1"),
    ],
)
def test_a_tap_that_cannot_be_is_one_clear_line_and_exit_1(repository: Path, flag: str, sentence: str) -> None:
    done = subprocess.run(command(repository, *flag.split()), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert sentence in done.stderr
