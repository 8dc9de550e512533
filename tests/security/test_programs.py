"""Attacks on a replica of programs: by a program that is hostile, and by a client of one."""

import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from serving_runtime.proxy.options import ProxyOptions
from serving_runtime.proxy.programs.plan import Ports, planned
from serving_runtime.proxy.programs.programs_file import BadPrograms, parsed, read
from tests.serving_runtime._support.programs import MODEL, is_gone, pids, program, replica, until

PORTS = {"predictor": Ports(1, 2), "transformer": Ports(3, 4), "explainer": Ports(5, 6)}


def test_a_program_gets_neither_variables_nor_sockets_of_its_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_SECRET", "of-the-proxy")
    programs = {
        "predictor": program(tmp_path, "predictor"),
        "explainer": program(tmp_path, "explainer", TOKEN="its own"),
    }
    with replica(tmp_path, programs) as served:
        served.until_ready()
        about = served.ask("GET", "/about").json()
        assert "FAIRLEAD_SECRET" not in about["env"]
        assert "TOKEN" not in about["env"]
        assert about["sockets"] == 2, "a socket of the replica's would let it answer in the proxy's stead"
        answer = served.infer(b"alone")
        assert not [name for name in answer.headers if name.startswith("fairlead-")], "it sends rows that are not true"


def test_a_program_that_stops_its_replica_leaves_nothing_running(tmp_path: Path) -> None:
    """It may end the proxy, which is of its own sandbox; the agent then sees the end of the process."""
    script = "sleep 1000 & echo $! > pid-of-sleep; kill -9 $PPID; sleep 1000"
    predictor = {**program(tmp_path, "predictor"), "command": ["/bin/sh", "-c", script]}
    with replica(tmp_path, {"predictor": predictor}) as served:
        assert served.ended() == -9
        until(lambda: all(map(is_gone, pids(tmp_path, ["sleep"]))))


def send_until_full(client: socket.socket) -> None:
    """Send until nothing more is taken; no answer is read."""
    client.settimeout(0.2)
    with suppress(TimeoutError):
        while True:
            client.sendall(bytes(2**20))


def test_a_client_that_never_reads_or_leaves_early_holds_no_memory_of_the_relay(tmp_path: Path) -> None:
    programs = {
        "predictor": program(tmp_path, "predictor"),
        "transformer": program(tmp_path, "transformer", GRPC="echo"),
    }
    with replica(tmp_path, programs) as served:
        served.until_ready()
        clients = [socket.socket(socket.AF_UNIX) for _ in range(4)]
        for client in clients:
            client.connect(str(tmp_path / "grpc"))
            send_until_full(client)
        resident = Path(f"/proc/{served.process.pid}/status").read_text().partition("VmHWM:")[2].split()[0]
        assert int(resident) < 64 * 1024
        for client in clients:
            client.close()
        assert served.infer(b"alone").status == 200


def test_a_file_cannot_make_the_runtime_run_words_of_an_author() -> None:
    """References in the runtime's command stay: its paths are the platform's, and an author chooses variables."""
    runtime = {
        "command": ["serve", "--model-repository=/$(EVIL)"],
        "folder": "/",
        "runtime": True,
        "env": {"EVIL": ".."},
    }
    options = ProxyOptions(target_port=0, model_name=MODEL)
    assert (
        planned(parsed({"predictor": runtime}), options, PORTS).children[0].command[1] == "--model-repository=/$(EVIL)"
    )


def test_a_file_without_an_end_is_not_read_to_it(tmp_path: Path) -> None:
    endless = tmp_path / "programs"
    with endless.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(BadPrograms, match="is larger than"):
        read(endless)
    assert not os.path.lexists(endless)
