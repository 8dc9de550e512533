"""A test process has a network of its own, in which fixed ports are free and nothing outside is reached."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import network

_LISTEN = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
own = pytest.mark.skipif(not network.is_isolated(), reason="this process may make no network namespace")


@own
def test_a_fixed_port_is_free_though_a_process_of_the_machine_listens_at_it() -> None:
    command = network.outside(sys.executable, "-c", _LISTEN)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout is not None
        port = int(listener.stdout.readline())
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)
        with socket.create_server(("127.0.0.1", port)):
            pass
        listener.communicate("")


@own
def test_what_a_test_starts_is_in_its_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), timeout=5)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
        assert subprocess.run(network.outside(sys.executable, "-c", code), check=False).returncode != 0


@own
def test_nothing_outside_is_reached() -> None:
    with pytest.raises(OSError, match="Network is unreachable"):
        socket.create_connection(("192.0.2.1", 80), timeout=5)


def test_a_process_that_is_to_stay_in_the_machines_network_does(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Path("/proc/self/ns/net").readlink()
    monkeypatch.setenv("FAIRLEAD_TEST_NETWORK", "machine")
    assert network.isolate() is False
    assert Path("/proc/self/ns/net").readlink() == before


def test_without_a_network_of_its_own_a_process_waits_for_its_turn_at_fixed_ports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = "from tests.servers.network import fixed_ports\nwith fixed_ports(): print('turn', flush=True)"
    environment = {**os.environ, "FAIRLEAD_TEST_NETWORK": "machine"}
    monkeypatch.setattr(network, "_state", {"isolated": False})
    with network.fixed_ports():
        other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
        with pytest.raises(subprocess.TimeoutExpired):
            other.communicate(timeout=1)
    assert other.communicate(timeout=30)[0] == "turn\n"
