"""Fairlead's serving runtime as its image starts it: validation, statistics, metrics, deadlines and limits on."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.serving import requests
from benchmarks.serving.models import MODELS, Model
from benchmarks.serving.peers.base import Running, link
from benchmarks.serving.processes import SERVER_CORE, Process, answers
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
        repository, ports = scratch / "fairlead", scratch / "fairlead-ports"
        save_repository(models, repository, self.serves)
        ports.unlink(missing_ok=True)
        addresses = [f"--{kind}-address=127.0.0.1" for kind in ("http", "grpc", "metrics")]
        free = [f"--{kind}-port=0" for kind in ("http", "grpc", "metrics")]
        flags = [f"--model-repository={repository}", f"--port-file={ports}", *addresses, *free, *self._flags]
        command = [sys.executable, "-m", "serving_runtime", *flags]
        process = Process(command, scratch / "fairlead.log", cores=self._cores, environment=IMAGE_ENVIRONMENT)
        process.wait_until(ports.exists)
        bound = json.loads(ports.read_text())
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


def save_repository(models: Path, repository: Path, names: Iterable[str]) -> None:
    """Write a model repository with the models, once."""
    if repository.exists():
        return
    for model in (MODELS[name] for name in names):
        link(models / f"{model.name}.onnx", repository / model.name / "1" / "model.onnx")
        batching = "dynamic_batching { }\n" if model.batching else ""
        text = f"max_batch_size: {model.max_batch_size}\n{batching}" if batching else "max_batch_size: 1\n"
        (repository / model.name / "config.pbtxt").write_text(text)
