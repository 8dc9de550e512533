"""The two ways to speak gRPC beside one another: grpcio's server and the runtime's own HTTP/2.

    python benchmarks/grpc_servers.py [--seconds 3] [--repeats 3]

Both servers have one core, the client the other; runs are interleaved and the median is shown. Compare the ratios:
absolute figures move with the machine. On a machine that is busy with other work only the processor time per request
says something; its ratio is shown beside the rates'. The model is that of `http_infer.py`. h2load repeats one request,
the best case for anything that is remembered; `changing` is a client that sends an id of its own with every call and
lets grpcio write the headers, whose deadlines differ from call to call. Needs h2load and taskset.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from http_infer import CLIENT_CORE, SIZES, processor_seconds, running, save_model, wait_for

from serving_runtime.proto import ModelInferRequest

METHOD = "/inference.GRPCInferenceService/ModelInfer"
SERVERS = ("grpcio", "h2")
LOADS = {
    "1 connection": ("-c1", "-m1"),
    "8 connections": ("-c8", "-m1"),
    "32 connections": ("-c32", "-m1"),
    "32 streams on one": ("-c1", "-m32"),
}

CHANGING = """
import asyncio, sys, time, uuid
import grpc
port, file, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
message = open(file, "rb").read()[5:]
async def main():
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        infer = channel.unary_unary(METHOD)
        count, end = 0, time.monotonic() + seconds
        async def ask(number):
            nonlocal count
            while time.monotonic() < end:
                await infer(message, timeout=10 + number + count / 1000, metadata=(("x-request-id", uuid.uuid4().hex),))
                count += 1
        await asyncio.gather(*[ask(number) for number in range(32)])
        print(count)
asyncio.run(main())
"""


class Server(NamedTuple):
    """A running server."""

    port: int
    pid: int


class Run(NamedTuple):
    """What one run found: requests a second, and the server's processor time for each, in microseconds."""

    rate: float
    processor_us: float


def save_body(file: Path) -> None:
    """Write one ModelInferRequest with gRPC's prefix."""
    request = ModelInferRequest(model_name="mlp_small")
    request.inputs.add(name="x", datatype="FP32", shape=[1, SIZES[0]])
    request.raw_input_contents.append(np.linspace(0, 1, SIZES[0], dtype="f4").tobytes())
    content = request.SerializeToString()
    file.write_bytes(b"\0" + len(content).to_bytes(4, "big") + content)


def h2load(server: Server, body: Path, seconds: int, load: tuple[str, ...]) -> int:
    """Return how many requests were answered."""
    headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"]
    command = ["h2load", "-t1", f"-D{seconds}", f"-d{body}", *load, *headers, f"http://127.0.0.1:{server.port}{METHOD}"]
    output = subprocess.run(["taskset", "-c", CLIENT_CORE, *command], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+) succeeded, (\d+) failed", output)
    if found is None or int(found[2]) or not int(found[1]):
        raise SystemExit(f"not every request was answered:\n{output}")
    return int(found[1])


def changing(server: Server, body: Path, seconds: int) -> int:
    """Return how many requests were answered whose headers differ."""
    script = f"METHOD = {METHOD!r}\n{CHANGING}"
    command = ["taskset", "-c", CLIENT_CORE, sys.executable, "-c", script, str(server.port), str(body), str(seconds)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measured(server: Server, body: Path, seconds: int, load: tuple[str, ...] | None) -> Run:
    before = processor_seconds(server.pid)
    count = changing(server, body, seconds) if load is None else h2load(server, body, seconds, load)
    return Run(count / seconds, (processor_seconds(server.pid) - before) / count * 1e6)


def line(
    label: str, servers: dict[str, Server], body: Path, load: tuple[str, ...] | None, options: argparse.Namespace
) -> str:
    runs: dict[str, list[Run]] = {name: [] for name in servers}
    for _ in range(options.repeats):
        for name, server in servers.items():
            runs[name].append(measured(server, body, options.seconds, load))
    cells = f"{label:20}"
    for column in (0, 1):
        old, new = (statistics.median(run[column] for run in runs[name]) for name in SERVERS)
        cells += f"{old:12.1f}{new:12.1f}{new / old if column == 0 else old / new:8.2f}"
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3, help="of one run (3)")
    parser.add_argument("--repeats", type=int, default=3, help="of each run (3)")
    found = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_model(folder / "models" / "mlp_small" / "1" / "model.onnx")
        save_body(folder / "body")
        flags = [f"--model-repository={folder / 'models'}", "--allow-http=false", "--metrics-port=0", "--grpc-port=0"]
        runtime = ["-m", "serving_runtime", *flags, "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1"]
        with (
            running(*runtime, "--grpc-server=grpcio", f"--port-file={folder / 'grpcio'}") as old,
            running(*runtime, "--grpc-server=h2", f"--port-file={folder / 'h2'}") as new,
        ):
            pids = {"grpcio": old.pid, "h2": new.pid}
            servers = {server: Server(wait_for(folder / server)["grpc"], pids[server]) for server in SERVERS}
            print(f"{os.getloadavg()[0]:.1f} processes were ready to run on {os.cpu_count()} cores before it began")
            print(f"{'':20}{'requests a second':>24}{'':8}{'us of processor each':>24}")
            print(f"{'':20}{'grpcio':>12}{'h2':>12}{'ratio':>8}{'grpcio':>12}{'h2':>12}{'ratio':>8}")
            for label, load in LOADS.items():
                print(line(label, servers, folder / "body", load, found), flush=True)
            print(line("changing, 32 calls", servers, folder / "body", None, found), flush=True)


if __name__ == "__main__":
    main()
