"""What the proxy before a custom container costs: latency, throughput and processor time of each request.

    python -m benchmarks.proxy_cost [--rounds 5] [--seconds 3] [--body 1024]

A container that answers each request with its body is asked directly and through `fairlead-serve proxy` by turns, over
one connection for latency and over `--connections` for throughput. Client, proxy and container share the machine.
"""

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

_START_S = 30.0
_PATH = "/v2/models/echo/infer"


class Echo(asyncio.Protocol):
    """The container: answers a request with its body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._held = b""

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end].lower()
            length = int((head.partition(b"content-length: ")[2] or b"0").split(b"\r\n")[0])
            body = self._held[end + 4 : end + 4 + length]
            if len(body) < length:
                return
            self._held = self._held[end + 4 + length :]
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (length, body))


async def serve(sock: socket.socket) -> None:
    server = await asyncio.get_running_loop().create_server(Echo, sock=sock)
    await server.serve_forever()


class Asking(asyncio.Protocol):
    """Sends one request after another until the time is over; notes how long each took, in seconds."""

    def __init__(self, request: bytes, body_bytes: int, until: float) -> None:
        self.taken: list[float] = []
        self.done = asyncio.get_running_loop().create_future()
        self._request, self._body_bytes, self._until = request, body_bytes, until

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._ask()

    def _ask(self) -> None:
        self._received = b""
        self._began = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, _, body = self._received.partition(b"\r\n\r\n")
        if len(body) < self._body_bytes:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        now = time.perf_counter()
        self.taken.append(now - self._began)
        if now < self._until:
            self._ask()
        else:
            self._transport.close()
            self.done.set_result(None)


async def load(port: int, connections: int, seconds: float, body_bytes: int) -> list[float]:
    """Return how long each request took, in seconds."""
    body = b"x" * body_bytes
    head = f"POST {_PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {body_bytes}\r\n\r\n"
    until = time.perf_counter() + seconds
    asking = [Asking(head.encode() + body, body_bytes, until) for _ in range(connections)]
    for each in asking:
        await asyncio.get_running_loop().create_connection(lambda each=each: each, "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*(each.done for each in asking))
    return sorted(taken for each in asking for taken in each.taken)


@contextmanager
def process(*command: str, folder: str) -> Iterator[tuple[int, int]]:
    """Run a server of this benchmark; yields its port and process id."""
    file = Path(folder, f"{time.monotonic_ns()}.json")
    arguments = [each.format(file=file) for each in command]
    with subprocess.Popen([sys.executable, "-m", *arguments]) as running:
        try:
            until = time.monotonic() + _START_S
            while not file.exists() or not file.read_text().strip():
                if running.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{arguments} did not start")
                time.sleep(0.01)
            yield json.loads(file.read_text())["http"], running.pid
        finally:
            running.terminate()


def processor_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "serve":
        sock = socket.create_server(("127.0.0.1", 0))
        Path(sys.argv[2]).write_text(json.dumps({"http": sock.getsockname()[1]}))
        uvloop.run(serve(sock))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--body", type=int, default=1024, help="bytes of a request and its answer")
    parser.add_argument("--connections", type=int, default=16)
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        process("benchmarks.proxy_cost", "serve", "{file}", folder=folder) as (port, _),
    ):
        flags = ["--address=127.0.0.1", "--http_port=0", "--metrics_port=0", "--port-file={file}"]
        command = ["serving_runtime", "proxy", f"--target_port={port}", "--model_name=echo", *flags]
        with process(*command, folder=folder) as (through, pid):
            report(chosen, {"direct": port, "through": through}, pid)


def report(chosen: argparse.Namespace, ports: dict[str, int], pid: int) -> None:
    """Measure and print a line per way and load."""
    for connections in (1, chosen.connections):
        medians: dict[str, list[float]] = {way: [] for way in ports}
        tails: dict[str, list[float]] = {way: [] for way in ports}
        rates: dict[str, list[float]] = {way: [] for way in ports}
        costs: list[float] = []
        for turn in range(chosen.rounds):
            for way in sorted(ports, reverse=bool(turn % 2)):
                before = processor_s(pid)
                taken = uvloop.run(load(ports[way], connections, chosen.seconds, chosen.body))
                if way == "through":
                    costs.append((processor_s(pid) - before) / len(taken) * 1e6)
                medians[way].append(taken[len(taken) // 2] * 1e6)
                tails[way].append(taken[len(taken) * 99 // 100] * 1e6)
                rates[way].append(len(taken) / chosen.seconds)
        for way in ports:
            p50, p99, rate = (statistics.median(each[way]) for each in (medians, tails, rates))
            print(f"{connections:3d} connections {way:8s} {rate:8.0f} requests/s  p50 {p50:7.0f} us  p99 {p99:7.0f} us")
        ratio = statistics.median(rates["through"]) / statistics.median(rates["direct"])
        print(
            f"    ratio of rates {ratio:.2f}; the proxy used {statistics.median(costs):.0f} us of processor a request"
        )
    print(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split("\n")[0].strip(), "resident at most")


if __name__ == "__main__":
    main()
