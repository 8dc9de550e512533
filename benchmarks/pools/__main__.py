"""What a pool costs a warm request: processor time of a pool's runtime and of an ordinary one, for each request.

    python -m benchmarks.pools [--rounds 10] [--requests 4000] [--known 10000]

Two servers with the same small model, one with a repository and one with a pool whose catalog knows many models, are
asked by turns, over HTTP with a binary tensor and over gRPC; the order changes from round to round.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from benchmarks.pools.by_turns import by_http, measured, report
from benchmarks.serving.models import save
from serving_runtime import proto
from serving_runtime.artifacts.unpack import digest_of_folder
from serving_runtime.pools import catalog

_START_S = 60.0
_METHOD = "/inference.GRPCInferenceService/ModelInfer"
_MODEL = "mlp-small"


@contextmanager
def running(command: Sequence[str], until: Path) -> Iterator[int]:
    """Yield the process id of a command once a file is there."""
    process = subprocess.Popen([sys.executable, "-m", "serving_runtime", *command], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_S
        while not until.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"it did not come up: {command[0]}")
            time.sleep(0.02)
        yield process.pid
    finally:
        process.kill()
        process.wait()


@contextmanager
def serving(source: str, ports: Path) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield the process id and the ports of a server."""
    flags = [each for name in ("http", "grpc") for each in (f"--{name}-address=127.0.0.1", f"--{name}-port=0")]
    with running([source, *flags, "--allow-metrics=false", f"--port-file={ports}"], ports) as pid:
        yield pid, json.loads(ports.read_text())


def fill(folder: Path, artifact: Path, known: int) -> None:
    """Write a catalog of many models with one artifact."""
    version = {"digest": digest_of_folder(artifact), "origin": str(artifact), "checked": True}
    document = json.dumps({"schema": 1, "default": 1, "versions": {"1": version}})
    for name in (f"bench.{_MODEL}", *(f"n{number}.{_MODEL}" for number in range(known))):
        file = catalog.place(folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(document)


def by_grpc(port: int, metadata: Sequence[tuple[str, str]], count: int) -> None:
    """Send calls one after the other over one connection."""
    message = proto.ModelInferRequest(model_name=_MODEL, raw_input_contents=[np.ones(64, "f4").tobytes()])
    message.inputs.add(name="x", datatype="FP32", shape=[1, 64])
    content = message.SerializeToString()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call: Any = channel.unary_unary(_METHOD, request_serializer=bytes, response_deserializer=bytes)
        for _ in range(count):
            call(content, metadata=metadata)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=4000, help="in each part of a round")
    parser.add_argument("--known", type=int, default=10_000, help="models in the catalog")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        artifact = folder / "models" / _MODEL / "1"
        artifact.mkdir(parents=True)
        save("mlp_small", artifact / "model.onnx")
        fill(folder / "catalog", artifact, options.known)
        place = folder / "s"
        fetcher = [
            "pool-fetcher",
            f"--catalog={folder / 'catalog'}",
            f"--cache={folder / 'cache'}",
            f"--socket={place}",
        ]
        with (
            running(fetcher, place),
            serving(f"--model-repository={folder / 'models'}", folder / "ordinary") as (ordinary, its),
            serving(f"--model-pool={place}", folder / "pooled") as (pooled, pools),
        ):
            path, below = f"/v2/models/{_MODEL}/infer", f"/serving/bench/{_MODEL}"
            named = (("fairlead-service", f"bench/{_MODEL}"),)
            ways: dict[str, dict[str, tuple[int, Callable[[int], None]]]] = {
                "HTTP": {
                    "ordinary": (ordinary, lambda count: by_http(its["http"], path, count)),
                    "pool": (pooled, lambda count: by_http(pools["http"], below + path, count)),
                },
                "gRPC": {  # the same metadata for both, as the gateway sends them
                    "ordinary": (ordinary, lambda count: by_grpc(its["grpc"], named, count)),
                    "pool": (pooled, lambda count: by_grpc(pools["grpc"], named, count)),
                },
            }
            for protocol, servers in ways.items():
                report(protocol, measured(servers, options.rounds, options.requests))


if __name__ == "__main__":
    main()
