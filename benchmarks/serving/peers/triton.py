"""Triton's server with its Python backend, both out of the wheel of nvidia-pytriton, and dynamic batching."""

import sys
from pathlib import Path

from benchmarks.serving import requests
from benchmarks.serving.models import MODELS, Model
from benchmarks.serving.peers.base import PEER_MODELS, Running, link
from benchmarks.serving.processes import Process, answers, free_ports

_STUB = "triton_python_backend_stub"
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"

_CONFIG = """backend: "python"
max_batch_size: {rows}
input {{ name: "x" data_type: TYPE_{datatype} dims: {inputs} }}
output {{ name: "y" data_type: TYPE_FP32 dims: {outputs} }}
instance_group {{ kind: KIND_CPU count: 1 }}
{batching}
"""


class Triton:
    name = "triton"
    requirements = ("nvidia-pytriton==0.7.0", "onnxruntime==1.31.0", "numpy<3")
    serves = tuple(MODELS)
    pauses = False  # it would take the processes of its models for dead, and end

    def start(self, python: Path, models: Path, scratch: Path) -> Running:
        repository = scratch / "triton"
        if not repository.exists():
            _save_repository(models, repository)
        process, http, grpc = serve(python, repository, scratch)
        url = f"http://127.0.0.1:{http}/v2"

        def address(model: Model) -> str:
            return f"{url}/models/{model.name}/infer"

        return Running(
            process,
            ready=answers(f"{url}/health/ready"),
            http=lambda model: (address(model), requests.v2_binary(model)),
            json=lambda model: (address(model), requests.v2_json(model)),
            grpc_port=grpc,
        )


def serve(python: Path, repository: Path, scratch: Path, *flags: str) -> tuple[Process, int, int]:
    """Start the server, and return it with its ports for HTTP and gRPC."""
    packages = next((python.parents[1] / "lib").glob("python3.*")) / "site-packages"
    server = packages / "pytriton" / "tritonserver"
    backends = scratch / "triton-backends"
    if not backends.exists():
        stub = server / "python_backend_stubs" / _VERSION / _STUB
        for file in (*(server / "backends" / "python").iterdir(), stub):
            if file.is_file():
                link(file, backends / "python" / file.name)
    http, grpc, metrics = free_ports(3)
    command = [
        str(server / "bin" / "tritonserver"),
        f"--model-repository={repository}",
        f"--backend-directory={backends}",
        *(f"--{kind}-port={port}" for kind, port in (("http", http), ("grpc", grpc), ("metrics", metrics))),
        *(f"--{kind}-address=127.0.0.1" for kind in ("http", "grpc", "metrics")),
        *flags,
    ]
    libraries = f"{server / 'external_libs'}:{packages / 'nvidia_pytriton.libs'}"
    environment = {"MODEL_PACKAGES": str(packages), "LD_LIBRARY_PATH": libraries}
    return Process(command, scratch / "triton.log", environment=environment), http, grpc


def _save_repository(models: Path, repository: Path) -> None:
    for model in MODELS.values():
        folder = repository / model.name
        link(models / f"{model.name}.onnx", folder / "1" / "model.onnx")
        link(PEER_MODELS / "triton_model.py", folder / "1" / "model.py")
        text = _CONFIG.format(
            rows=model.max_batch_size if model.batching else 1,
            datatype=model.datatype,
            inputs=list(model.sample.shape[1:]),
            outputs=list(model.dims),
            batching="dynamic_batching { }" if model.batching else "",
        )
        (folder / "config.pbtxt").write_text(text)
