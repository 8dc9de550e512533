"""Several processes as one server: the same ports, one metrics page, and what is asked of one is done by all."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import pytest

from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, command, server

WORKERS = 2
ROW = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 8], "data": [0] * 8}]}
EXPLICIT = ("--model-control-mode=explicit", "--load-model=mlp")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = tmp_path_factory.mktemp("workers") / "models"
    for name in ("mlp", "other"):
        onnx_models.mlp(onnx_models.configure(models / name, "") / "1" / "model.onnx")
    return models


@pytest.fixture(scope="module")
def shared(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Return a server whose counts nobody relies on."""
    scratch = tmp_path_factory.mktemp("workers")
    with server(repository, f"--workers={WORKERS}", *EXPLICIT, scratch=scratch) as process:
        yield process


def workers_of(process: ServerProcess) -> list[int]:
    children = Path(f"/proc/{process.process.pid}/task/{process.process.pid}/children").read_text().split()
    return [int(child) for child in children]


def ask(process: ServerProcess, method: str, path: str, json: object = None) -> httpx.Response:
    """Ask by a connection of its own, which the kernel gives to either worker."""
    return httpx.request(method, f"{process.url}{path}", json=json, timeout=120)


def everywhere(process: ServerProcess, method: str, path: str, json: object = None) -> set[int]:
    """Return the status codes of so many requests that, but once in millions, every worker is among the askers."""
    return {ask(process, method, path, json).status_code for _ in range(24)}


def test_counts_are_those_of_all_workers(repository: Path, tmp_path: Path) -> None:
    with server(repository, f"--workers={WORKERS}", scratch=tmp_path) as process:
        assert len(workers_of(process)) == WORKERS
        assert everywhere(process, "POST", "/v2/models/mlp/infer", ROW) == {200}
        assert process.metric("nv_inference_request_success", model="mlp") == 24
        assert process.metric("fairlead_inference_request_duration_us_count", model="mlp") == 24
        page = process.metrics_page()
        assert page.count("nv_inference_request_success{") == 2  # a series for each model, whichever worker answered
        assert page.count("nv_cpu_utilization") == 3  # HELP, TYPE and the value: the machine is there once
        for _ in range(8):
            (stats,) = ask(process, "GET", "/v2/models/mlp/stats").json()["model_stats"]
            assert stats["inference_stats"]["success"]["count"] == 24
            assert stats["batch_stats"][0]["compute_infer"]["count"] == 24
        started = process.metric("process_start_time_seconds")
        assert abs(started - time.time()) < 24 * 3600  # one time, no sum of them
        process.terminate()
        assert process.process.wait(60) == 0


def test_the_ports_of_the_server_are_told_once_and_no_workers_own(repository: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with server(repository, f"--workers={WORKERS}", *EXPLICIT, f"--log-file={log}", scratch=tmp_path) as process:
        found = log.read_text()
        workers = workers_of(process)
    ports = f"http port {process.http}, grpc port {process.grpc}, metrics port {process.metrics}"
    assert re.findall(r"ready on (.*)", found) == [ports]
    assert sorted(re.findall(r"worker process (\d+) is ready", found)) == sorted(map(str, workers))
    assert found.count(" port ") == 3


def test_a_model_is_loaded_and_unloaded_by_all(shared: ServerProcess) -> None:
    for _ in range(2):
        assert everywhere(shared, "GET", "/v2/models/other/ready") <= {400, 404, 503}
        assert ask(shared, "POST", "/v2/repository/models/other/load").status_code == 200
        assert everywhere(shared, "POST", "/v2/models/other/infer", ROW) == {200}
        assert ask(shared, "POST", "/v2/repository/models/other/unload").status_code == 200


def test_a_model_brought_along_over_grpc_is_loaded_by_all(shared: ServerProcess, repository: Path) -> None:
    request = proto.message("inference.RepositoryModelLoadRequest")(model_name="brought")
    request.parameters["config"].string_param = '{"backend": "onnxruntime"}'
    content = (repository / "mlp" / "1" / "model.onnx").read_bytes()
    request.parameters["file:1/model.onnx"].bytes_param = content
    with grpc.insecure_channel(f"127.0.0.1:{shared.grpc}") as channel:
        load = channel.unary_unary("/inference.GRPCInferenceService/RepositoryModelLoad")
        load(request.SerializeToString(), timeout=120)
    assert everywhere(shared, "POST", "/v2/models/brought/infer", ROW) == {200}


def test_what_cannot_be_loaded_is_refused_in_words(shared: ServerProcess) -> None:
    answer = ask(shared, "POST", "/v2/repository/models/absent/load")
    assert answer.status_code in (400, 404)
    assert "absent" in answer.json()["error"]


def test_settings_are_changed_in_all(shared: ServerProcess) -> None:
    for level in (1, 0):
        assert ask(shared, "POST", "/v2/logging", {"log_verbose_level": level}).json()["log_verbose_level"] == level
        found = {ask(shared, "GET", "/v2/logging").json()["log_verbose_level"] for _ in range(24)}
        assert found == {level}


def test_workers_end_when_who_started_them_is_killed(repository: Path, tmp_path: Path) -> None:
    with server(repository, f"--workers={WORKERS}", scratch=tmp_path) as process:
        workers = workers_of(process)
        process.process.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 60
        while any(_runs(worker) for worker in workers):
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_worker_that_ends_takes_the_server_along(repository: Path, tmp_path: Path) -> None:
    with server(repository, f"--workers={WORKERS}", scratch=tmp_path) as process:
        os.kill(workers_of(process)[1], signal.SIGKILL)
        assert process.process.wait(60) == 1


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--allow-client-shm",), "--allow-client-shm does not go with --workers=2"),
        (("--metrics-config=summary_latencies=true",), "quantiles of several processes do not add up"),
        (("--load-on-demand",), "--load-on-demand does not go with --workers=2"),
    ],
)
def test_what_one_of_several_workers_cannot_answer_for_is_refused(
    repository: Path, flags: tuple[str, ...], sentence: str
) -> None:
    arguments = command(repository, "--workers=2", *flags)
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert sentence in done.stderr


def test_a_port_that_another_server_shares_among_its_workers_is_taken(shared: ServerProcess, repository: Path) -> None:
    arguments = [*command(repository, "--workers=2"), f"--http-port={shared.http}"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{shared.http}" in done.stderr


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
