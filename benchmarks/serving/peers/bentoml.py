"""BentoML with a service of one batchable method; JSON of its own, one model a server."""

from pathlib import Path

from benchmarks.serving import requests
from benchmarks.serving.peers.base import PEER_MODELS, Running
from benchmarks.serving.processes import Process, answers, free_ports


class BentoML:
    name = "bentoml"
    requirements = ("bentoml==1.4.38", "onnxruntime")
    serves = ("mlp_small",)
    pauses = True

    def start(self, python: Path, models: Path, scratch: Path) -> Running:
        (port,) = free_ports(1)
        command = [str(python), "-m", "bentoml", "serve", "bentoml_service:Mlp", "--host=127.0.0.1", f"--port={port}"]
        environment = {
            "BENTOML_DO_NOT_TRACK": "True",
            "BENTOML_HOME": str(scratch / "bentoml"),
            "MODEL_FILE": str(models / "mlp_small.onnx"),
        }
        process = Process(command, scratch / "bentoml.log", environment=environment, folder=PEER_MODELS)
        url = f"http://127.0.0.1:{port}"
        return Running(
            process,
            ready=answers(f"{url}/readyz"),
            http=lambda model: (f"{url}/predict", requests.plain_json(model)),
        )
