"""Which process listens on each endpoint of a replica of programs."""

import socket
from pathlib import Path
from typing import Any

import pytest

from serving_runtime.proxy.programs.programs_file import Programs, parsed
from serving_runtime.server.proxy_endpoints import NAMES, opened
from serving_runtime.server.sockets import StartError

PROGRAM: dict[str, Any] = {"command": ["serve"], "folder": "/"}
RUNTIME = {**PROGRAM, "runtime": True}
ON_PORTS = dict.fromkeys(NAMES, ("127.0.0.1", 0))


def programs(**found: dict[str, Any]) -> Programs:
    return parsed(found)


def test_a_program_has_them_all_here_and_none_listens_for_grpc() -> None:
    with opened(programs(predictor=PROGRAM), ON_PORTS) as found:
        assert found.runtimes == []
        assert found.sockets.metrics is not None
        assert found.sockets.grpc is not None
        assert len(set(found.places.values())) == 3
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(found.places["grpc"])))


def test_a_runtime_binds_ports_itself_that_the_port_file_names() -> None:
    with opened(programs(predictor=RUNTIME), ON_PORTS) as found:
        assert (found.sockets.metrics, found.sockets.grpc) == (None, None)
        assert [each.flags for each in found.runtimes] == [
            (f"--{name}-address=127.0.0.1", f"--{name}-port={found.places[name]}") for name in ("grpc", "metrics")
        ]
        assert [sock.getsockname()[1] for sock in found.sockets.reserved] == [
            found.places[name] for name in ("grpc", "metrics")
        ], "held until it starts, so that no program is given the same"


def test_a_runtime_behind_a_transformer_has_metrics_alone() -> None:
    with opened(programs(predictor=RUNTIME, transformer=PROGRAM), ON_PORTS) as found:
        assert found.sockets.metrics is None
        assert found.sockets.grpc is not None
        assert [each.flags[1] for each in found.runtimes] == [f"--metrics-port={found.places['metrics']}"]


def test_paths_go_to_the_runtime_unchanged_and_files_bound_here_are_removed(tmp_path: Path) -> None:
    asked = {name: (f"unix:{tmp_path / name}", 0) for name in NAMES}
    with opened(programs(predictor=RUNTIME), asked) as found:
        assert [each.flags for each in found.runtimes] == [
            (f"--{name}-address=unix:{tmp_path / name}",) for name in ("grpc", "metrics")
        ]
        assert found.places == {name: f"unix:{tmp_path / name}" for name in NAMES}
        assert [file.name for file in tmp_path.iterdir()] == ["http"]
    assert not [*tmp_path.iterdir()]


def test_an_endpoint_that_cannot_be_bound_names_its_flag(tmp_path: Path) -> None:
    asked = {**ON_PORTS, "grpc": (f"unix:{tmp_path}/none/grpc", 0)}
    with (
        pytest.raises(StartError, match=r"--grpc-address=unix:.*: there is no folder"),
        opened(programs(predictor=PROGRAM), asked),
    ):
        pass
