"""A server on Unix sockets: with workers, with sockets that its starter has bound."""

import json
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import pytest

from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import START_S, command

NAMES = ("http", "grpc", "metrics")
ROW = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 8], "data": [0] * 8}]}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = tmp_path_factory.mktemp("unix") / "models"
    onnx_models.mlp(onnx_models.configure(models / "mlp", "") / "1" / "model.onnx")
    return models


@contextmanager
def serving(
    repository: Path, folder: Path, *flags: str, pass_fds: Sequence[int] = ()
) -> Iterator["subprocess.Popen[str]"]:
    """Run a server until the block ends; `folder` gets its port file."""
    arguments = command(repository, f"--port-file={folder / 'ports'}", *flags)
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, pass_fds=pass_fds
    ) as process:
        try:
            deadline = time.monotonic() + START_S
            while not (folder / "ports").exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    process.kill()
                    pytest.fail(f"the server did not come up: {process.communicate()[0]}")
                time.sleep(0.01)
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


def places(folder: Path) -> list[str]:
    return [f"--{name}-address=unix:{folder / name}" for name in NAMES]


def ask(path: Path, method: str, target: str, host: str = "localhost", json: object = None) -> httpx.Response:
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
        return client.request(method, f"http://{host}{target}", json=json, timeout=60)


def is_live(path: Path) -> bool:
    with grpc.insecure_channel(f"unix:{path}") as channel:
        live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
        answer = live(proto.message("inference.ServerLiveRequest")().SerializeToString(), timeout=60)
    return bool(proto.message("inference.ServerLiveResponse").FromString(answer).live)


def listeners(pid: int) -> set[str]:
    """Return the TCP sockets of a process, by their inodes."""
    table = Path(f"/proc/{pid}/net/tcp").read_text() + Path(f"/proc/{pid}/net/tcp6").read_text()
    inodes = {line.split()[9] for line in table.splitlines() if "inode" not in line}
    held = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    return {inode for inode in inodes if f"socket:[{inode}]" in held}


def test_every_endpoint_answers_on_its_own_socket_and_none_on_a_port(repository: Path, tmp_path: Path) -> None:
    with serving(repository, tmp_path, *places(tmp_path)) as process:
        found = json.loads((tmp_path / "ports").read_text())
        assert found == {name: f"unix:{tmp_path / name}" for name in NAMES}
        assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in NAMES} == {0o600}
        for host in ("localhost", "replica.example:80", "x"):
            assert ask(tmp_path / "http", "POST", "/v2/models/mlp/infer", host, ROW).status_code == 200
        assert (
            'nv_inference_request_success{model="mlp",version="1"} 3'
            in ask(tmp_path / "metrics", "GET", "/metrics").text
        )
        assert is_live(tmp_path / "grpc")
        assert listeners(process.pid) == set()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert [name for name in NAMES if (tmp_path / name).exists()] == []


def test_workers_share_the_sockets(repository: Path, tmp_path: Path) -> None:
    with serving(repository, tmp_path, *places(tmp_path), "--workers=2") as process:
        for _ in range(4):
            assert ask(tmp_path / "http", "POST", "/v2/models/mlp/infer", json=ROW).status_code == 200
        assert (
            'nv_inference_request_success{model="mlp",version="1"} 4'
            in ask(tmp_path / "metrics", "GET", "/metrics").text
        )
        assert is_live(tmp_path / "grpc")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        held = [{str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()} for pid in children]
        listening = [
            row for line in Path("/proc/net/unix").read_text().splitlines() if (row := line.split())[3] == "00010000"
        ]
        own = {str(tmp_path / name) for name in ("http", "grpc")}
        shared = {f"socket:[{row[6]}]" for row in listening if row[-1] in own}
        assert len(held) == 2
        assert all(len(each & shared) == 2 for each in held)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert [name for name in NAMES if (tmp_path / name).exists()] == []


@pytest.mark.parametrize("workers", [1, 2])
def test_sockets_that_its_starter_bound_are_taken_and_left_to_it(
    repository: Path, tmp_path: Path, workers: int
) -> None:
    bound = {name: socket.socket(socket.AF_UNIX) for name in NAMES}
    for name, sock in bound.items():
        sock.bind(str(tmp_path / name))
    numbers = {name: sock.fileno() for name, sock in bound.items()}
    flags = [f"--{name}-address=fd:{number}" for name, number in numbers.items()]
    with serving(repository, tmp_path, *flags, f"--workers={workers}", pass_fds=list(numbers.values())) as process:
        for sock in bound.values():
            sock.close()
        found = json.loads((tmp_path / "ports").read_text())
        assert found == {name: f"unix:{tmp_path / name}" for name in NAMES}
        assert ask(tmp_path / "http", "POST", "/v2/models/mlp/infer", json=ROW).status_code == 200
        assert "nv_inference_request_success" in ask(tmp_path / "metrics", "GET", "/metrics").text
        assert is_live(tmp_path / "grpc")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert all((tmp_path / name).is_socket() for name in NAMES)


def test_what_a_killed_server_left_is_replaced(repository: Path, tmp_path: Path) -> None:
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        with serving(repository, folder, *places(tmp_path)):
            assert ask(tmp_path / "http", "GET", "/v2/health/ready").status_code == 200
    assert (tmp_path / "http").is_socket()  # the context killed it, and it could not remove its own


def refusal(repository: Path, *flags: str) -> str:
    done = subprocess.run(command(repository, *flags), capture_output=True, text=True, timeout=START_S, check=False)
    assert done.returncode == 1
    return done.stderr.strip()


def test_places_that_cannot_be_are_refused_in_one_sentence(repository: Path, tmp_path: Path) -> None:
    metrics = f"--metrics-address=unix:{tmp_path}/metrics"
    long = f"--http-address=unix:{tmp_path}/{'x' * 108}"
    assert "that of a Unix socket at most 107; shorten it" in refusal(repository, long, metrics)
    absent = f"--http-address=unix:{tmp_path}/absent/http"
    assert f"there is no folder {tmp_path}/absent; make it" in refusal(repository, absent, metrics)
    (tmp_path / "file").write_text("kept")
    file = f"--http-address=unix:{tmp_path}/file"
    assert "there is a file that is no socket" in refusal(repository, file, metrics)
    assert (tmp_path / "file").read_text() == "kept"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "other"))
        other.listen()
        for name in ("http", "grpc"):
            taken = f"--{name}-address=unix:{tmp_path}/other"
            assert "another process listens there" in refusal(repository, taken, metrics)
    assert (tmp_path / "other").is_socket()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        pytest.param(["--http-address=unix:/run/http"], "give --metrics-address", id="metrics beside no port"),
        pytest.param(["--http-address=unix:http"], "is not unix: with an absolute path", id="a relative path"),
        pytest.param(["--http-address=fd:x"], "is not fd: with the number", id="no number"),
        pytest.param(["--grpc-address=fd:99"], "no socket was left open there", id="nothing inherited"),
        pytest.param(["--grpc-address=unix:/a", "--metrics-address=unix:/a"], "two endpoints", id="one for two"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(repository: Path, flags: list[str], said: str) -> None:
    plain = [flag for flag in command(repository) if not flag.startswith("--metrics-address")]
    done = subprocess.run([*plain, *flags], capture_output=True, text=True, timeout=START_S, check=False)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
