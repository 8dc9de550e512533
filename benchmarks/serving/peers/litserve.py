"""LitServe with batching; JSON of its own, one model a server."""

from pathlib import Path

from benchmarks.serving import requests
from benchmarks.serving.peers.base import PEER_MODELS, Running
from benchmarks.serving.processes import Process, answers, free_ports


class LitServe:
    name = "litserve"
    requirements = ("litserve==0.2.19", "onnxruntime")
    serves = ("mlp_small",)
    pauses = True

    def start(self, python: Path, models: Path, scratch: Path) -> Running:
        (port,) = free_ports(1)
        command = [str(python), str(PEER_MODELS / "litserve_server.py"), str(models / "mlp_small.onnx"), str(port)]
        process = Process(command, scratch / "litserve.log")
        url = f"http://127.0.0.1:{port}"

        return Running(
            process,
            ready=answers(f"{url}/health"),
            http=lambda model: (f"{url}/predict", requests.plain_json(model)),
        )
