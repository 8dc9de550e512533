"""The command `proxy`, as a process."""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from integrations.clusters.base import ObservedReplica, ObservedRevision, ReplicaPhase
from integrations.metrics import counters
from tests.serving_runtime._support.processes import START_S

SMALL_MIB = 64
HEAVY = ("numpy", "google", "onnxruntime", "serving_runtime.engine", "serving_runtime.backends")


class Container(http.server.BaseHTTPRequestHandler):
    """A server in V2 of the standard library's making: HTTP/1.0, one connection a request."""

    def do_GET(self) -> None:
        self.answer(200)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(500 if body == b"fail" else 400 if body == b"bad" else 200)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def container() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Container) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def command(*flags: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "serving_runtime", "proxy", "--address=127.0.0.1", *flags],
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        text=True,
    )


def ask(port: int, path: str, body: bytes | None = None) -> "tuple[int, dict[str, str], str]":
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", body, timeout=10) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read().decode()


def test_it_serves_until_it_is_terminated_and_the_control_plane_reads_its_metrics(
    tmp_path: Path, container: int
) -> None:
    file = tmp_path / "ports.json"
    flags = [f"--target_port={container}", "--model_name=digits", f"--port-file={file}"]
    ports = ["--http_port=0", "--metrics_port=0", "--protocol=v2"]
    process = command(*flags, *ports, FAIRLEAD_REVISION="digits-00001", FAIRLEAD_LOG_FORMAT="json")
    try:
        until = time.monotonic() + START_S
        while not file.exists():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < until
            time.sleep(0.01)
        found = json.loads(file.read_text())
        status, headers, _ = ask(found["http"], "/v2/models/digits/infer", b"{}")
        assert (status, headers["fairlead-revision"]) == (200, "digits-00001")
        assert [ask(found["http"], "/v2/models/digits/infer", body)[0] for body in (b"fail", b"bad")] == [500, 400]
        assert ask(found["http"], "/v2/health/ready")[0] == 200
        assert ask(found["metrics"], "/")[0] == 404
        _, _, page = ask(found["metrics"], "/metrics")
        replica = ObservedReplica("digits-00001-a", ReplicaPhase.READY, metrics_url="http://unused")
        sample = counters.replica_sample(ObservedRevision("digits-00001", 100), replica, page, "digits")
        assert (sample.requests, sample.client_errors, sample.server_errors, sample.in_flight) == (3, 1, 1, 0)
        assert sum(sample.latency_counts) == 1
        assert sample.started_at == pytest.approx(time.time(), abs=START_S)
        resident = Path(f"/proc/{process.pid}/status").read_text().partition("VmHWM:")[2].split()[0]
        assert int(resident) < SMALL_MIB * 1024
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=30)[1]
        assert process.returncode == 0
        assert [json.loads(line)["message"] for line in log.splitlines()][-1] == "stopped"
    finally:
        process.kill()
        process.wait()


def test_it_loads_neither_numpy_nor_the_engine() -> None:
    code = "import sys, serving_runtime.server.commands.proxy, serving_runtime.proxy.server; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert "serving_runtime.proxy.exchange" in loaded
    assert loaded.isdisjoint(HEAVY)
    assert not [name for name in loaded if name.startswith("serving_runtime.proxy.programs")]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--model_name=m"], "give --target_port of a container, or --programs to start"),
        (["--model_name=m", "--programs=f", "--target_port=1"], "--target_port does not go with --programs"),
        (["--target_port=1", "--model_name=m", "--http-address=fd:3"], "--http-address goes with --programs"),
        (
            ["--model_name=m", "--programs=f", "--http-address=fd:3", "--grpc-address=fd:3"],
            "fd:3 is the address of two endpoints",
        ),
        (["--target_port=0", "--model_name=m"], "'0' is no port that a container listens on"),
        (["--target_port=8000", "--model_name=m"], "--target_port=8000 is a port of the proxy itself"),
        (["--target_port=1", "--model_name=m", "--protocol=v3"], "invalid choice: 'v3'"),
        (["--target_port=1", "--model_name=m", "--health_path=up"], "'up' is no path: it begins with /"),
        (["--target_port=1", "--model_name=m", "--health_path=/a b"], "'/a b' is no path"),
        (["--target_port=1", "--model_name="], "--model_name is empty"),
    ],
)
def test_wrong_flags_are_refused_in_one_line(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from serving_runtime.__main__ import main  # noqa: PLC0415

    with pytest.raises(SystemExit) as end:
        main(["proxy", *flags])
    assert end.value.code == 1
    written = capsys.readouterr().err
    assert message in written
    assert len(written.splitlines()) == 1


def test_a_port_in_use_is_named(container: int) -> None:
    process = command("--target_port=1", "--model_name=m", f"--http_port={container}")
    assert process.wait(START_S) == 1
    assert process.stderr is not None
    with process.stderr as log:
        written = log.read()
    assert f"cannot listen on 127.0.0.1:{container}" in written
    assert "choose another port with --http_port" in written
