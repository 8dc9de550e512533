"""A replica hangs, and clients fill Envoy's heap: it ends those that hold most, does not grow on, and serves others."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from benchmarks.flood import attacks
from benchmarks.flood.attacks import Target
from benchmarks.serving import envoys
from benchmarks.serving.processes import Process
from integrations.clusters.local.agent.gateway.routing import Routing
from integrations.clusters.local.envoy.overload import STALL_S
from integrations.clusters.local.envoy.values import Backend, Endpoint, RevisionEndpoints, ServiceRoute
from serving_runtime.protocol.http2 import frames

MIB = 2**20
MAX_HEAP_BYTES = 64 * MIB
BEYOND_BYTES = 128 * MIB
"""What may arrive between two looks of Envoy, and what its allocator keeps; without any limit it grew by 290 MiB."""

CLIENTS, CONNECTIONS, CALLS = 400, 16, 1000
BODY_BYTES = 64 * MIB
PATH = "/serving/default/small/v2/"
ATTACK_S = 8.0
OTHERS_WAIT_S = STALL_S + 30.0


class HungReplica:
    """Answers for its health, and to empty requests with more than anybody takes; reads nothing of others."""

    def __init__(self) -> None:
        self._connections: list[asyncio.StreamWriter] = []

    async def start(self) -> int:
        """Listen on a port of the loopback, and return it."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def stop(self) -> None:
        self._server.close()
        for each in self._connections:
            each.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.append(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readexactly(len(frames.PREFACE))
            if head == frames.PREFACE:  # HTTP/2: no window is ever widened
                writer.write(frames.frame(frames.SETTINGS, 0, 0))
                while await reader.read(MIB):
                    pass
                return
            head += await reader.readuntil(b"\r\n\r\n")
            asks = head.startswith(b"GET")
            if not asks and b"content-length: 0\r\n" not in head.lower():
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                return
            length = 0 if asks else BODY_BYTES
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % length)
            for _ in range(length // MIB):
                writer.write(bytes(MIB))
                await writer.drain()
            writer.close()


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[tuple[Process, int]]:
    """Envoy with a small heap before a replica that hangs, and its port."""
    replica = HungReplica()
    at = await replica.start()
    revision = RevisionEndpoints("default", "small-00001", (Endpoint(at, at),))
    service = ServiceRoute("default", "small", (Backend("small-00001", model_version="1", share_percent=100),))
    routing = Routing((service,), (revision,))
    process, port = await asyncio.to_thread(envoys.start, routing, tmp_path / "envoy", max_heap_bytes=MAX_HEAP_BYTES)
    try:
        await answered(port)
        yield process, port
    finally:
        replica.stop()
        await asyncio.to_thread(process.stop)


async def status(port: int) -> int | None:
    """Return what another client is answered on a connection of its own; None where it is closed."""
    async with httpx.AsyncClient(timeout=20) as client:
        try:
            return (await client.get(f"http://127.0.0.1:{port}{PATH}health/ready")).status_code
        except httpx.TransportError:
            return None


async def answered(port: int) -> None:
    """Wait until another client is served."""
    deadline = time.monotonic() + OTHERS_WAIT_S
    while await status(port) != 200:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


async def bodies(port: int) -> None:
    """Begin requests, and once all are with the replica send large bodies."""
    head = f"POST {PATH}models/small/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {BODY_BYTES}\r\n\r\n".encode()
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CLIENTS)]
    for _, writer in opened:
        writer.write(head)
    await asyncio.gather(*[_send(writer) for _, writer in opened])


async def _send(writer: asyncio.StreamWriter) -> None:
    with closed(writer), suppress(OSError):
        for _ in range(BODY_BYTES // MIB):
            writer.write(bytes(MIB))
            await writer.drain()


async def unread_answers(port: int) -> None:
    """Ask for large answers, each once the one before has begun, and read no further."""
    asks = f"POST {PATH}models/small/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode()
    with ExitStack() as stack:
        for _ in range(CLIENTS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.enter_context(closed(writer))
            writer.write(asks)
            await reader.read(1)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(2 * OTHERS_WAIT_S)


async def calls(port: int) -> None:
    """Send calls over HTTP/2 that lack their end."""
    target = Target(port, port)
    hold_s = 2 * OTHERS_WAIT_S
    await attacks.unfinished_calls(
        target, connections=CONNECTIONS, calls=CALLS, hold_s=hold_s, authority="small.default"
    )


@contextmanager
def closed(writer: asyncio.StreamWriter) -> Iterator[None]:
    try:
        yield
    finally:
        writer.transport.abort()


def resident_bytes(process: Process) -> int:
    return int(Path(f"/proc/{process.pid}/status").read_text().split("VmRSS:")[1].split()[0]) * 1024


@pytest.mark.parametrize("attack", [bodies, unread_answers, calls])
async def test_others_are_served_while_clients_fill_the_heap(
    gateway: tuple[Process, int], attack: Callable[[int], Awaitable[None]]
) -> None:
    process, port = gateway
    before_bytes = most_bytes = resident_bytes(process)
    attacking = asyncio.ensure_future(attack(port))
    found: set[int | None] = set()
    deadline = time.monotonic() + ATTACK_S
    try:
        while time.monotonic() < deadline:
            found.add(await status(port))
            most_bytes = max(most_bytes, resident_bytes(process))
            await asyncio.wait([attacking], timeout=0.1)
        await answered(port)  # the attackers hold on
    finally:
        attacking.cancel()
        with suppress(asyncio.CancelledError):
            await attacking
    assert most_bytes - before_bytes < MAX_HEAP_BYTES + BEYOND_BYTES
    assert found <= {200, 503, None}
