"""The two ways to speak gRPC beside one another: grpcio's server and the runtime's own HTTP/2.

    python -m benchmarks.grpc_servers [--seconds 3] [--repeats 3]

Both servers have one core, the client the other; runs are interleaved and the median is shown. Compare the ratios:
absolute figures move with the machine. On a machine that is busy with other work only the processor time per request
says something; its ratio is shown beside the rates'. h2load repeats one request, the best case for anything that is
remembered; `changing` is a client that sends an id of its own with every call and lets grpcio write the headers, whose
deadlines differ from call to call. `messages` are on one ModelStreamInfer call. Needs h2load and taskset.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.serving import loads, models, requests
from benchmarks.serving.peers.base import Running
from benchmarks.serving.peers.fairlead import Fairlead
from benchmarks.serving.processes import CLIENT_CORE

SERVERS = ("grpcio", "h2")
LOADS = {
    "1 connection": (1, 1),
    "8 connections": (8, 1),
    "32 connections": (32, 1),
    "32 streams on one": (1, 32),
    "changing, 32 calls": "changing",
    "messages, 1 at once": "1",
    "messages, 32 at once": "32",
}
"""Connections and streams of h2load; or else the client with changing headers, or how many messages are in flight."""

CHANGING = """
import asyncio, sys, time, uuid
import grpc
method, port, file, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
message = open(file, "rb").read()[5:]
async def main():
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        infer = channel.unary_unary(method)
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


class Run(NamedTuple):
    """What one run found: requests a second, and the server's processor time for each, in microseconds."""

    rate: float
    processor_us: float


def measured(server: Running, load: tuple[int, int] | str, seconds: int, scratch: Path) -> Run:
    assert server.grpc_port is not None
    before = server.process.cpu_s()
    message = requests.v2_grpc(models.MODELS["mlp_small"])
    if isinstance(load, tuple):
        count = loads.h2load(server.grpc_port, message, *load, seconds, scratch).count
    else:
        port, file = str(server.grpc_port), scratch / "message"
        file.write_bytes(message)
        if load == "changing":
            client = ["-c", CHANGING, requests.METHOD, port, str(file), str(seconds)]
        else:
            client = ["-m", "benchmarks.serving.streamed", port, str(file), load, str(seconds)]
        command = ["taskset", "-c", CLIENT_CORE, sys.executable, *client]
        count = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return Run(count / seconds, (server.process.cpu_s() - before) / count * 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3, help="of one run (3)")
    parser.add_argument("--repeats", type=int, default=3, help="of each run (3)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models.save("mlp_small", folder / "models" / "mlp_small.onnx")
        started: dict[str, Running] = {}
        try:
            for server in SERVERS:
                peer = Fairlead(f"--grpc-server={server}", serves=("mlp_small",))
                (folder / server).mkdir()
                started[server] = peer.start(Path(sys.executable), folder / "models", folder / server)
            print(f"{os.getloadavg()[0]:.1f} processes were ready to run on {os.cpu_count()} cores before it began")
            print(f"{'':20}{'requests a second':>24}{'':8}{'us of processor each':>24}")
            print(f"{'':20}{'grpcio':>12}{'h2':>12}{'ratio':>8}{'grpcio':>12}{'h2':>12}{'ratio':>8}")
            for label, load in LOADS.items():
                runs: dict[str, list[Run]] = {server: [] for server in SERVERS}
                for _ in range(options.repeats):
                    for server, running in started.items():
                        runs[server].append(measured(running, load, options.seconds, folder))
                print(line(label, runs), flush=True)
        finally:
            for running in started.values():
                running.process.stop()


def line(label: str, runs: dict[str, list[Run]]) -> str:
    cells = f"{label:20}"
    for column in (0, 1):
        old, new = (statistics.median(run[column] for run in runs[server]) for server in SERVERS)
        cells += f"{old:12.1f}{new:12.1f}{new / old if column == 0 else old / new:8.2f}"
    return cells


if __name__ == "__main__":
    main()
