"""Start, cancellation and end of a real server process."""

import asyncio
import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import httpx
import numpy as np
import pytest

from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, command, server

SIZE = 256


@pytest.fixture(scope="module")
def slow_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One model, one request at a time, some tens of milliseconds each."""
    root = tmp_path_factory.mktemp("repository")
    onnx_models.slow(onnx_models.configure(root / "slow", "max_batch_size: 8") / "1" / "model.onnx", SIZE)
    return root


def until(condition: Callable[[], bool], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.002)


def slow_body(rows: int = 8) -> tuple[bytes, dict[str, str]]:
    data = np.ones((rows, SIZE), "f4").tobytes()
    tensor = {"name": "x", "datatype": "FP32", "shape": [rows, SIZE], "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [tensor]}).encode()
    return head + data, {"Inference-Header-Content-Length": str(len(head))}


def accepted(process: ServerProcess) -> float:
    return process.metric("nv_inference_request_success", "nv_inference_request_failure", "fairlead_inflight_requests")


async def test_sigterm_finishes_what_was_accepted_and_exits_0(slow_repository: Path, tmp_path: Path) -> None:
    body, headers = slow_body()
    url = "/v2/models/slow/infer"
    with server(slow_repository, scratch=tmp_path) as process:
        async with httpx.AsyncClient(base_url=process.url, timeout=30) as client:
            assert (await client.get("/v2/health/ready")).status_code == 200
            pending = [asyncio.create_task(client.post(url, content=body, headers=headers)) for _ in range(6)]
            await asyncio.to_thread(until, lambda: accepted(process) == 6, "all requests are accepted")
            process.terminate()
            answers = await asyncio.gather(*pending)
        assert {answer.status_code for answer in answers} == {200}
        assert answers[-1].headers["connection"] == "close"
        output, _ = process.process.communicate(timeout=20)
        assert process.process.returncode == 0, output
        assert "Traceback" not in output


async def test_sigterm_finishes_grpc_calls_too(slow_repository: Path, tmp_path: Path) -> None:
    request = proto.ModelInferRequest(model_name="slow")
    request.inputs.add(name="x", datatype="FP32", shape=[8, SIZE])
    request.raw_input_contents.append(np.ones((8, SIZE), "f4").tobytes())
    with server(slow_repository, scratch=tmp_path) as process:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{process.grpc}") as channel:
            infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            calls = [infer(request.SerializeToString()) for _ in range(6)]
            await asyncio.to_thread(until, lambda: accepted(process) == 6, "all calls are accepted")
            process.terminate()
            assert len(await asyncio.gather(*calls)) == 6
        process.process.communicate(timeout=20)
        assert process.process.returncode == 0


@pytest.mark.feature("E20")
async def test_requests_whose_clients_left_are_taken_out_of_the_queue(slow_repository: Path, tmp_path: Path) -> None:
    body, headers = slow_body()
    request = proto.ModelInferRequest(model_name="slow")
    request.inputs.add(name="x", datatype="FP32", shape=[8, SIZE])
    request.raw_input_contents.append(np.ones((8, SIZE), "f4").tobytes())
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    post = (
        f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    )
    with server(slow_repository, scratch=tmp_path) as process:
        writers = []
        for _ in range(10):
            _, writer = await asyncio.open_connection("127.0.0.1", process.http)
            writer.write(post)
            await writer.drain()
            writers.append(writer)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{process.grpc}") as channel:
            infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            calls = [infer(request.SerializeToString()) for _ in range(5)]
            waiting = [asyncio.ensure_future(call) for call in calls]
            await asyncio.to_thread(until, lambda: accepted(process) == 15, "all requests are accepted")
            for call in calls:
                call.cancel()
            for writer in writers:
                writer.transport.abort()
            await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.to_thread(
            until, lambda: process.metric("fairlead_inflight_requests") == 0, "nothing is in flight any more"
        )
        assert process.metric("nv_inference_request_failure", reason="CANCELED") >= 5
        assert process.metric("nv_inference_pending_request_count") == 0


def test_an_exit_timeout_that_is_over_ends_the_process_with_1(slow_repository: Path, tmp_path: Path) -> None:
    with server(slow_repository, "--exit-timeout-secs=0", scratch=tmp_path) as process:
        with socket.create_connection(("127.0.0.1", process.http)) as half:
            half.sendall(b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
            process.terminate()
            output, _ = process.process.communicate(timeout=20)
        assert process.process.returncode == 1
        assert "exit timeout of 0 s is over" in output


def test_an_idle_server_needs_no_time_to_end(slow_repository: Path, tmp_path: Path) -> None:
    with server(slow_repository, "--exit-timeout-secs=0", scratch=tmp_path) as process:
        process.terminate()
        process.process.communicate(timeout=20)
        assert process.process.returncode == 0


def test_interrupt_ends_like_sigterm(slow_repository: Path, tmp_path: Path) -> None:
    with server(slow_repository, "--allow-grpc=false", "--allow-metrics=false", scratch=tmp_path) as process:
        assert (process.grpc, process.metrics) == (0, 0)
        process.process.send_signal(signal.SIGINT)
        process.process.communicate(timeout=20)
        assert process.process.returncode == 0


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("endpoint", ["http", "grpc", "metrics"])
def test_a_taken_port_is_one_clear_line_and_exit_1(slow_repository: Path, endpoint: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(*command(slow_repository, f"--{endpoint}-port={port}"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"fairlead-serve: cannot listen on 127.0.0.1:{port}: Address already in use; "
        f"choose another port with --{endpoint}-port, or 0 for a free one\n"
    )


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        pytest.param("--http-prot=1", "unrecognized arguments: --http-prot=1", id="a misspelt flag"),
        pytest.param(
            "--host-policy=a,b=c", "--host-policy is not supported: instances are not bound", id="one not offered"
        ),
        pytest.param(
            "--model-control-mode=always",
            "invalid choice: 'always' (choose from 'none', 'poll', 'explicit')",
            id="a mode",
        ),
        pytest.param("--http-port=70000", "'70000' is not a port from 0 to 65535", id="no port"),
        pytest.param("--exit-on-error=perhaps", "'perhaps' is neither true nor false", id="no bool"),
        pytest.param(
            "--backend-config=paddle,a=b", "--backend-config=paddle: there is no such backend", id="another backend"
        ),
        pytest.param("--backend-config=onnxruntime,a=b", "onnxruntime,a: unknown setting", id="an unknown setting"),
        pytest.param("--model-repository=/nowhere", "--model-repository /nowhere: no such folder", id="no repository"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line_and_exit_1(slow_repository: Path, flag: str, sentence: str) -> None:
    done = run(*command(slow_repository, flag))
    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_bad_model_ends_the_server_unless_told_otherwise(tmp_path: Path) -> None:
    root = tmp_path / "models"
    onnx_models.identity(root / "good" / "1" / "model.onnx")
    (root / "bad" / "1").mkdir(parents=True)
    (root / "bad" / "1" / "model.onnx").write_text("no model")
    done = run(*command(root))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("fairlead-serve: model 'bad' version 1: model.onnx is not an ONNX")
    with server(root, "--exit-on-error=false", scratch=tmp_path) as process:
        assert httpx.get(f"{process.url}/v2/health/ready").status_code == 400
        assert httpx.get(f"{process.url}/v2/models/good/ready").status_code == 200
        (bad,) = [entry for entry in httpx.post(f"{process.url}/v2/repository/index").json() if entry["name"] == "bad"]
        assert bad["state"] == "UNAVAILABLE"
        assert "is not an ONNX model" in bad["reason"]
    with server(root, "--exit-on-error=false", "--strict-readiness=false", scratch=tmp_path) as process:
        assert httpx.get(f"{process.url}/v2/health/ready").status_code == 200
