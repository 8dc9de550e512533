"""MLServer with a runtime of ONNX Runtime, one process, adaptive batching; over HTTP it speaks JSON only."""

import json
from pathlib import Path

from benchmarks.serving import requests
from benchmarks.serving.models import Model
from benchmarks.serving.peers.base import PEER_MODELS, Running
from benchmarks.serving.processes import Process, answers, free_ports


class MLServer:
    name = "mlserver"
    requirements = ("mlserver==1.7.1", "uvloop<0.22", "onnxruntime")
    serves = ("mlp_small", "bert_mini", "resnet50", "image_mean")
    pauses = True

    def start(self, python: Path, models: Path, scratch: Path) -> Running:
        folder = scratch / "mlserver"
        http, grpc, metrics = free_ports(3)
        for name in self.serves:
            (folder / name).mkdir(parents=True, exist_ok=True)
            settings = {
                "name": name,
                "implementation": "mlserver_runtime.OnnxModel",
                "parameters": {"uri": str(models / f"{name}.onnx")},
                **({"max_batch_size": 64, "max_batch_time": 0.0005} if name == "mlp_small" else {}),
            }
            (folder / name / "model-settings.json").write_text(json.dumps(settings))
        whole = {"host": "127.0.0.1", "http_port": http, "grpc_port": grpc, "metrics_port": metrics}
        whole |= {"parallel_workers": 0, "debug": False, "grpc_max_message_length": 64 * 1024 * 1024}
        (folder / "settings.json").write_text(json.dumps(whole))
        command = [str(python.with_name("mlserver")), "start", str(folder)]
        environment = {"PYTHONPATH": str(PEER_MODELS)}
        process = Process(command, scratch / "mlserver.log", environment=environment, folder=folder)
        url = f"http://127.0.0.1:{http}/v2"

        def post(model: Model) -> tuple[str, requests.Body]:
            return f"{url}/models/{model.name}/infer", requests.v2_json(model)

        return Running(process, ready=answers(f"{url}/health/ready"), http=post, json=post, grpc_port=grpc)
