"""KServe's Python server with a model of ONNX Runtime, by binary tensors and gRPC."""

from pathlib import Path

from benchmarks.serving import requests
from benchmarks.serving.models import Model
from benchmarks.serving.peers.base import PEER_MODELS, Running
from benchmarks.serving.processes import Process, answers, free_ports


class KServe:
    name = "kserve"
    requirements = ("kserve==0.21.0", "onnxruntime")
    serves = ("mlp_small", "bert_mini", "resnet50")
    pauses = True

    def start(self, python: Path, models: Path, scratch: Path) -> Running:
        http, grpc = free_ports(2)
        ports = [f"--http_port={http}", f"--grpc_port={grpc}", "--enable_docs_url=false", "--workers=1"]
        command = [str(python), str(PEER_MODELS / "kserve_server.py"), *ports, "--models", str(models), *self.serves]
        process = Process(command, scratch / "kserve.log")
        url = f"http://127.0.0.1:{http}/v2"

        def address(model: Model) -> str:
            return f"{url}/models/{model.name}/infer"

        return Running(
            process,
            ready=answers(f"{url}/models/{self.serves[-1]}/ready"),
            http=lambda model: (address(model), requests.v2_binary(model)),
            json=lambda model: (address(model), requests.v2_json(model)),
            grpc_port=grpc,
        )
