"""Fairlead's serving runtime as its image starts it: validation, statistics, metrics, deadlines and limits on."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.serving import requests
from benchmarks.serving.models import MODELS, Model
from benchmarks.serving.peers.base import Running, link
from benchmarks.serving.processes import SERVER_CORE, Process, answers
from integrations.clusters.local.envoy.values import Endpoint
from integrations.clusters.local.runtime import IMAGE_ENVIRONMENT


class Fairlead:
    name = "fairlead"
    requirements = ()
    pauses = True

    def __init__(self, *flags: str, cores: str = SERVER_CORE, serves: tuple[str, ...] = tuple(MODELS)) -> None:
        self.serves = serves
        self._flags = flags
        self._cores = cores

    def start(self, python: Path, models: Path, scratch: Path) -> Running:  # noqa: ARG002 - the project's own
        addresses = [f"--{kind}-address=127.0.0.1" for kind in ("http", "grpc")]
        ports = [f"--{kind}-port=0" for kind in ("http", "grpc")]
        process, bound = self._started(models, scratch, [*addresses, *ports])
        url = f"http://127.0.0.1:{bound['http']}/v2"

        def address(model: Model) -> str:
            return f"{url}/models/{model.name}/infer"

        return Running(
            process,
            ready=answers(f"{url}/health/ready"),
            http=lambda model: (address(model), requests.v2_binary(model)),
            json=lambda model: (address(model), requests.v2_json(model)),
            grpc_port=bound["grpc"],
        )

    def start_behind(self, models: Path, scratch: Path) -> tuple[Process, Endpoint]:
        """Start it as a gateway's replica, on Unix sockets in `scratch`, and return where it listens."""
        http, grpc = str(scratch / "http.sock"), str(scratch / "grpc.sock")
        process, _ = self._started(models, scratch, [f"--http-address=unix:{http}", f"--grpc-address=unix:{grpc}"])
        return process, Endpoint(http, grpc)

    def _started(self, models: Path, scratch: Path, listens: Sequence[str]) -> tuple[Process, Mapping[str, Any]]:
        """Start it, and return what its port file says."""
        repository, ports = scratch / "fairlead", scratch / "fairlead-ports"
        save_repository(models, repository, self.serves)
        ports.unlink(missing_ok=True)
        listens = [*listens, "--metrics-address=127.0.0.1", "--metrics-port=0"]
        flags = [f"--model-repository={repository}", f"--port-file={ports}", *listens, *self._flags]
        command = [sys.executable, "-m", "serving_runtime", *flags]
        process = Process(command, scratch / "fairlead.log", cores=self._cores, environment=IMAGE_ENVIRONMENT)
        process.wait_until(ports.exists)
        return process, json.loads(ports.read_text())


def save_repository(models: Path, repository: Path, names: Iterable[str]) -> None:
    """Write a model repository with the models, once."""
    if repository.exists():
        return
    for model in (MODELS[name] for name in names):
        link(models / f"{model.name}.onnx", repository / model.name / "1" / "model.onnx")
        batching = "dynamic_batching { }\n" if model.batching else ""
        text = f"max_batch_size: {model.max_batch_size}\n{batching}" if batching else "max_batch_size: 1\n"
        (repository / model.name / "config.pbtxt").write_text(text)
