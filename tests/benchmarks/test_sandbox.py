"""The benchmark of the sandbox: where it finds a replica, and its table."""

import json
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from benchmarks import sandbox


@pytest.mark.parametrize(
    ("ports", "expected"), [({"http": 8080, "grpc": 9}, "8080"), ({"http": "unix:/a/http"}, "unix:/a/http")]
)
def test_an_address_is_a_port_or_a_socket_in_a_file(tmp_path: Path, ports: dict[str, object], expected: str) -> None:
    (tmp_path / "ports").write_text(json.dumps(ports))
    assert sandbox.address_in(tmp_path / "ports") == expected


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_both_kinds_of_addresses_are_asked(tmp_path: Path, kind: str) -> None:
    with socket.socket(socket.AF_UNIX) if kind == "unix" else socket.create_server(("127.0.0.1", 0)) as server:
        if kind == "unix":
            server.bind(str(tmp_path / "http"))
            server.listen()
        address = f"unix:{tmp_path / 'http'}" if kind == "unix" else str(server.getsockname()[1])

        def answer() -> None:
            client, _ = server.accept()
            with client:
                client.recv(65536)
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert sandbox.ready(address)
        thread.join()
    assert not sandbox.ready(address)


def test_the_table_has_medians_and_their_ratios() -> None:
    off = sandbox.Measured(request_us=[50, 60, 1000], start_s=[1], start_cpu_s=[0.5])
    best = sandbox.Measured(request_us=[63], start_s=[1.5], start_cpu_s=[0.5])
    found = [line.split()[-3:] for line in sandbox.table(off, best).splitlines()]
    assert found == [
        ["off", "best", "ratio"],
        ["60.0", "63.0", "1.050"],
        ["0.500", "0.500", "1.000"],
        ["1.000", "1.500", "1.500"],
    ]


@pytest.mark.long
def test_it_measures_replicas_with_and_without(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.sandbox", "--rounds", "1", "--requests", "50"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    figures = [float(number) for number in re.findall(r"\s(\d+\.\d+)", done.stdout)]
    assert len(figures) == 9
    assert all(figures)
