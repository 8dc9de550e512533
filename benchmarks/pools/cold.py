"""What the first answer of a model that is not in memory takes: a pool beside Triton's explicit load and unload.

    python -m benchmarks.pools.cold [--models 100] [--loaded 16] [--memory-mib 12] [--warm 2000]

Each model has weights of its own. Both servers are asked for one model after the other, by turns: a pool by requests
alone, which keeps what its memory budget has room for; Triton with its Python backend by a load call before the
request, and from some number on by an unload call for the oldest. Then each is asked for a loaded model. Both have one
core, the client has another.
"""

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

import numpy as np

from benchmarks.pools.machine import model
from benchmarks.serving.peers.base import PEER_MODELS, link
from benchmarks.serving.peers.fairlead import IMAGE_ENVIRONMENT
from benchmarks.serving.peers.triton import Triton, serve
from benchmarks.serving.processes import CLIENT_CORE, Process, answers, run_program
from benchmarks.serving.venvs import python_with
from pools.domain.figures import figures
from serving_runtime.artifacts.unpack import digest_of_folder
from serving_runtime.pools import catalog

_LOADS = r"(?m)^fairlead_pool_load_duration_us_sum(?:{.*})? (\S+)$"
_CONFIG = """backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: [-1, 64] }
output { name: "y" data_type: TYPE_FP32 dims: [-1, 10] }
instance_group { kind: KIND_CPU count: 1 }
"""


@dataclass
class Server:
    """A server under test.

    Attributes:
        path: of a model's infer endpoint, with its name in place of `{}`.
        first_s: seconds from the wish for each model until its answer.
        warm_s: seconds of each request of a loaded model.
    """

    name: str
    process: Process
    connection: HTTPConnection
    path: str
    first_s: list[float] = field(default_factory=list)
    warm_s: list[float] = field(default_factory=list)

    def ask(self, number: int) -> float:
        """Send a request to a model, and return the seconds that it took."""
        tensor = {"name": "x", "datatype": "FP32", "shape": [1, 64], "parameters": {"binary_data_size": 256}}
        head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
        headers = {"Inference-Header-Content-Length": str(len(head))}
        began = time.perf_counter()
        self.post(self.path.format(name(number)), head + np.linspace(0, 1, 64, dtype="f4").tobytes(), headers)
        return time.perf_counter() - began

    def post(self, path: str, body: bytes = b"{}", headers: dict[str, str] | None = None) -> None:
        """Post, and raise RuntimeError where the server refuses."""
        self.connection.request("POST", path, body, headers or {})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{self.name} answered {path} with {answer.status}: {content[:300]!r}")


def name(number: int) -> str:
    return f"m-{number}"


def save(folder: Path, count: int) -> None:
    """Write the models as Triton's repository, and a pool's catalog of the same files."""
    for number in range(count):
        artifact = folder / "models" / name(number)
        artifact.mkdir(parents=True)
        (artifact / "model.onnx").write_bytes(model(number))
        link(artifact / "model.onnx", folder / "triton" / name(number) / "1" / "model.onnx")
        link(PEER_MODELS / "triton_model.py", folder / "triton" / name(number) / "1" / "model.py")
        (folder / "triton" / name(number) / "config.pbtxt").write_text(_CONFIG)
        version = {"digest": digest_of_folder(artifact), "origin": str(artifact), "checked": True}
        file = catalog.place(folder / "catalog", f"bench.{name(number)}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"schema": 1, "default": 1, "versions": {"1": version}}))


def start_triton(folder: Path, ends: ExitStack) -> Server:
    """Start Triton without a model."""
    python = python_with(Triton.name, Triton.requirements)
    process, port, _ = serve(python, folder / "triton", folder, "--model-control-mode=explicit")
    ends.callback(process.stop)
    process.wait_until(answers(f"http://127.0.0.1:{port}/v2/health/ready"))
    return Server("Triton", process, HTTPConnection("127.0.0.1", port), "/v2/models/{}/infer")


def start_pool(folder: Path, memory_mib: int, ends: ExitStack) -> tuple[Server, int]:
    """Start a pool's fetcher and its runtime, and return the server and its port for metrics."""
    place, ports = folder / "s", folder / "ports"
    runtime = [sys.executable, "-m", "serving_runtime"]
    fetched = [f"--catalog={folder / 'catalog'}", f"--cache={folder / 'cache'}", f"--socket={place}"]
    fetcher = Process([*runtime, "pool-fetcher", *fetched], folder / "fetcher.log")
    ends.callback(fetcher.stop)
    fetcher.wait_until(place.exists)
    listens = [f"--{each}-{what}" for each in ("http", "grpc", "metrics") for what in ("address=127.0.0.1", "port=0")]
    budget = f"--model-memory-budget-bytes={memory_mib << 20}"
    flags = [f"--model-pool={place}", f"--port-file={ports}", budget, *listens]
    process = Process([*runtime, *flags], folder / "pool.log", environment=IMAGE_ENVIRONMENT)
    ends.callback(process.stop)
    process.wait_until(ports.exists)
    bound = json.loads(ports.read_text())
    connection = HTTPConnection("127.0.0.1", bound["http"])
    return Server("pool", process, connection, "/serving/bench/{0}/v2/models/{0}/infer"), bound["metrics"]


def metrics_page(port: int) -> str:
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    return connection.getresponse().read().decode()


def cold(pool: Server, triton: Server, models: int, loaded: int) -> None:
    """Ask both for each model by turns; Triton is told what to load and unload."""
    for number in range(models):
        for server in (pool, triton) if number % 2 else (triton, pool):
            began = time.perf_counter()
            if server is triton:
                if number >= loaded:
                    server.post(f"/v2/repository/models/{name(number - loaded)}/unload")
                server.post(f"/v2/repository/models/{name(number)}/load")
            server.ask(number)
            server.first_s.append(time.perf_counter() - began)


def warm(pool: Server, triton: Server, number: int, requests: int) -> None:
    """Ask both for a loaded model, by turns of a hundred requests."""
    for turn in range(max(1, requests // 100)):
        for server in (pool, triton) if turn % 2 else (triton, pool):
            server.warm_s += [server.ask(number) for _ in range(100)]


def report(servers: Sequence[Server]) -> None:
    """Print what each took, and the ratios."""
    for each in servers:
        median, high = np.quantile(each.first_s, [0.5, 0.99])
        print(
            f"{each.name}: the first answer of a model after {median * 1e3:.1f} ms (p99 {high * 1e3:.0f}), "
            f"{len(each.first_s) / sum(each.first_s):.1f} models a second one after the other, "
            f"a loaded one in {statistics.median(each.warm_s) * 1e6:.0f} us; {each.process.rss_mb():.0f} MB resident"
        )
    pool, triton = servers
    first = statistics.median(triton.first_s) / statistics.median(pool.first_s)
    loaded = statistics.median(triton.warm_s) / statistics.median(pool.warm_s)
    print(f"Triton takes {first:.1f} times as long for a first answer, {loaded:.2f} times for one of a loaded model")


def measure(folder: Path, options: argparse.Namespace, ends: ExitStack) -> None:
    """Start both servers, ask them, and print what they took."""
    triton = start_triton(folder, ends)
    pool, metrics = start_pool(folder, options.memory_mib, ends)
    cold(pool, triton, options.models, options.loaded)
    page = metrics_page(metrics)
    found, loads_s = figures([page]), float(next(re.finditer(_LOADS, page))[1]) / 1e6
    warm(pool, triton, options.models - 1, options.warm)
    report((pool, triton))
    print(
        f"the pool loaded {found.loads} models and has {found.loaded_models} in memory; its first answers came "
        f"{(sum(pool.first_s) - loads_s) / found.loads * 1e3:.1f} ms after the load's end, on average"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--loaded", type=int, default=16, help="models that Triton has at once")
    parser.add_argument("--memory-mib", type=int, default=12, help="of the pool's models")
    parser.add_argument("--warm", type=int, default=2000, help="requests of a loaded model")
    options = parser.parse_args()
    os.sched_setaffinity(0, {int(CLIENT_CORE)})
    with tempfile.TemporaryDirectory(prefix="fairlead-cold-") as scratch:
        folder = Path(scratch)
        save(folder, options.models)
        with ExitStack() as ends:
            measure(folder, options, ends)
    return 0


if __name__ == "__main__":
    run_program(main)
