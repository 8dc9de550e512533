"""What a relay costs: processor time of a server, and of its relay, for each request that its payload logger posts.

    python -m benchmarks.relay_cost [--rounds 8] [--requests 3000]

Two servers with the same model, one whose logger connects by itself and one whose logger goes through a relay in its
sandbox, are asked by turns; the order changes from round to round. Both post two events a request to one receiver.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.serving.models import save
from integrations.relay import start
from integrations.sandbox.command import command
from serving_runtime.shared.egress import networks

_START_S, _POSTED_S = 60.0, 60.0


class Receiver(asyncio.Protocol):
    """Takes posts and answers 204; counts them all together."""

    posts = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self._held = transport, b""

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end].lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            if len(self._held) < end + 4 + length:
                return
            self._held = self._held[end + 4 + length :]
            Receiver.posts += 1
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")  # type: ignore[attr-defined]


async def ask(port: int, count: int) -> None:
    """Send requests one after the other over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    x = {"name": "x", "datatype": "FP32", "shape": [1, 64], "data": [0.5] * 64}
    body = json.dumps({"inputs": [x]}).encode()
    head = f"POST /v2/models/mlp_small/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for _ in range(count):
        writer.write(head + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in answer[:20]:
            raise RuntimeError(answer.decode())
        await reader.readexactly(int(answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
    writer.close()


def processor_s(pid: int) -> float:
    """Return the processor time that a process has taken, in the scheduler's own nanoseconds for its threads."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


@contextmanager
def serving(repository: Path, port_file: Path, *flags: str) -> Iterator[tuple[int, int]]:
    """Yield the process id and the HTTP port of a server."""
    addresses = [each for name in ("http", "metrics") for each in (f"--{name}-address=127.0.0.1", f"--{name}-port=0")]
    words = [f"--model-repository={repository}", *addresses, "--allow-grpc=false", f"--port-file={port_file}", *flags]
    process = subprocess.Popen([sys.executable, "-m", "serving_runtime", *words], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_S
        while not port_file.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the server did not come up")
            time.sleep(0.02)
        yield process.pid, json.loads(port_file.read_text())["http"]
    finally:
        process.kill()
        process.wait()


@contextmanager
def relaying(folder: Path, port: int) -> Iterator[tuple[int, Path]]:
    """Yield the process id of a relay to a port of this machine, and its socket."""
    target = start.Target("127.0.0.1", port, networks("127.0.0.0/8"))
    with closing(start.listening(folder / "relay")) as listener:
        asked = command(start.command([(listener.fileno(), target)]), sandbox=start.sandbox())
        process = subprocess.Popen(asked, pass_fds=[listener.fileno()], env={})
    try:
        yield process.pid, folder / "relay"
    finally:
        process.kill()
        process.wait()


async def measured(port: int, pids: list[int], requests: int) -> list[float]:
    """Return the microseconds that each process took for a request and its two events."""
    before, posted = [processor_s(pid) for pid in pids], Receiver.posts
    await ask(port, requests)
    async with asyncio.timeout(_POSTED_S):
        while Receiver.posts < posted + 2 * requests:  # noqa: ASYNC110 - another process posts
            await asyncio.sleep(0.02)
    return [(processor_s(pid) - then) / requests * 1e6 for pid, then in zip(pids, before, strict=True)]


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--requests", type=int, default=3000, help="in each half of a round")
    options = parser.parse_args()
    receiver = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0)
    to = receiver.sockets[0].getsockname()[1]
    flags = (f"--payload-logger=http://127.0.0.1:{to}/", "--payload-logger-allowed-networks=127.0.0.0/8")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "models" / "mlp_small" / "1").mkdir(parents=True)
        save("mlp_small", folder / "models" / "mlp_small" / "1" / "model.onnx")
        with (
            relaying(folder, to) as (relay, path),
            serving(folder / "models", folder / "direct", *flags) as direct,
            serving(folder / "models", folder / "relayed", *flags, f"--payload-logger-socket={path}") as relayed,
        ):
            ways = {"direct": (direct[1], [direct[0]]), "relayed": (relayed[1], [relayed[0], relay])}
            found: dict[str, list[list[float]]] = {name: [] for name in ways}
            for turn in range(-1, options.rounds):  # the first warms up
                for name in sorted(ways, reverse=bool(turn % 2)):
                    taken = await measured(*ways[name], options.requests)
                    if turn >= 0:
                        found[name].append(taken)
    for name, rounds in found.items():
        parts = [statistics.median(values) for values in zip(*rounds, strict=True)]
        print(
            f"{name}: " + ", ".join(f"{what} {us:.0f} us" for what, us in zip(("server", "relay"), parts, strict=False))
        )


if __name__ == "__main__":
    asyncio.run(main())
