"""What no server can be faster than: the same bytes from nowhere, and a server without all that makes it one."""

import sys
from pathlib import Path

from benchmarks.serving import requests
from benchmarks.serving.models import MODELS
from benchmarks.serving.peers.base import Running
from benchmarks.serving.processes import SERVER_CORE, Process


class _Bare:
    requirements = ()
    serves: tuple[str, ...] = ("mlp_small",)
    pauses = True
    name: str

    def __init__(self, *, cores: str = SERVER_CORE) -> None:
        self._cores = cores

    def start(self, python: Path, models: Path, scratch: Path) -> Running:  # noqa: ARG002 - the project's own
        ports = scratch / f"{self.name}-ports"
        ports.unlink(missing_ok=True)
        command = [sys.executable, str(Path(__file__).parents[1] / "prototype.py"), self.name, str(ports), str(models)]
        process = Process(command, scratch / f"{self.name}.log", cores=self._cores)
        process.wait_until(ports.exists)
        http, grpc = ports.read_text().split()
        return Running(
            process,
            ready=lambda: True,
            http=lambda model: (f"http://127.0.0.1:{http}/{model.name}", requests.v2_binary(model)),
            grpc_port=int(grpc),
        )


class Echo(_Bare):
    """An answer of the right bytes that no model made."""

    name = "echo"


class Prototype(_Bare):
    """The models on the barest server there can be in Python."""

    name = "prototype"
    serves = tuple(MODELS)
