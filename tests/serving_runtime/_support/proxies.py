"""A proxy on real sockets before a container that a test scripts, and raw clients for it."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from serving_runtime.proxy.options import ProxyLimits, ProxyOptions
from serving_runtime.proxy.server import ProxyServer
from tests.serving_runtime._support.http_listener import Client

MODEL = "digits"
INFER = f"/v2/models/{MODEL}/infer"


class Asked(NamedTuple):
    """A request as the container got it."""

    line: str
    headers: dict[str, str]
    body: bytes


class Peer:
    """The container's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def head(self) -> Asked:
        """Return the next request without its body; raises IncompleteReadError at the end of the connection."""
        line, *rest = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
        return Asked(line, {name.lower(): value for name, value in (each.split(": ", 1) for each in rest)}, b"")

    async def request(self) -> Asked:
        """Return the next request."""
        asked = await self.head()
        if "transfer-encoding" in asked.headers:
            body = b""
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readexactly(2)
        else:
            body = await self.reader.readexactly(int(asked.headers.get("content-length", "0")))
        return asked._replace(body=body)

    async def send(self, content: bytes) -> None:
        self.writer.write(content)
        await self.writer.drain()

    async def answer(self, body: bytes = b"ok", status: int = 200, headers: str = "") -> None:
        await self.send(f"HTTP/1.1 {status} Whatever\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def gone(self) -> None:
        """Return once the proxy has ended the connection."""
        async with asyncio.timeout(10):
            with suppress(ConnectionError):
                await self.reader.read()


Script = Callable[[Peer], Awaitable[None]]
"""What the container does on each connection."""


async def echo(peer: Peer) -> None:
    """Answer each request with its body."""
    while True:
        await peer.answer((await peer.request()).body)


class Proxied:
    """A proxy, its container, and clients.

    Attributes:
        connections: that the container has accepted.
    """

    def __init__(self, server: ProxyServer, http: int, metrics: int) -> None:
        self.server = server
        self.connections = 0
        self._http = http
        self._metrics = metrics
        self._clients: list[Client] = []

    async def client(self, content: bytes = b"") -> Client:
        return await self._connected(self._http, content)

    async def ask(self, content: bytes) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the answer to a request on a connection of its own."""
        return await (await self.client(content)).answer()

    async def get(self, path: str) -> tuple[int, dict[str, str], bytes]:
        return await self.ask(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    async def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that have the labels."""
        client = await self._connected(self._metrics, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        _, _, page = await client.answer()
        found = re.findall(rf"^{name}{{(.*)}} (.+)$", page.decode(), re.MULTILINE)
        assert found, page.decode()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(float(value) for shown, value in found if all(each in shown for each in wanted))

    async def failures(self) -> dict[str, float]:
        """Return how many requests failed, by reason, without reasons of none."""
        reasons = ("REJECTED", "CANCELED", "BACKEND", "OTHER")
        found = {each: await self.metric("nv_inference_request_failure", reason=each) for each in reasons}
        return {reason: count for reason, count in found.items() if count}

    async def until(self, metric: str, value: float, **labels: str) -> None:
        """Wait until a metric has a value."""
        async with asyncio.timeout(10):
            while await self.metric(metric, **labels) != value:  # noqa: ASYNC110 - of another side of a socket
                await asyncio.sleep(0.01)

    async def _connected(self, port: int, content: bytes) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", port))
        self._clients.append(client)
        client.send(content)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.writer.close()


@asynccontextmanager
async def proxied(
    script: Script | None = echo, *, limits: ProxyLimits | None = None, **options: Any
) -> AsyncIterator[Proxied]:
    """Run a proxy before a container with a script, or before a port that refuses connections."""
    target, http, metrics = (socket.create_server(("127.0.0.1", 0)) for _ in range(3))
    port = target.getsockname()[1]
    chosen = ProxyOptions(
        target_port=port, model_name=MODEL, revision="digits-00001", limits=limits or ProxyLimits(), **options
    )
    server = ProxyServer(chosen, http, metrics)
    found = Proxied(server, http.getsockname()[1], metrics.getsockname()[1])
    peers: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.connections += 1
        task = asyncio.current_task()
        assert task is not None
        peers.add(task)
        try:
            if script is not None:
                await script(Peer(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            peers.discard(task)
            writer.close()

    if script is None:
        target.close()
        container = None
    else:
        container = await asyncio.start_server(connected, sock=target)
    await server.start()
    try:
        yield found
    finally:
        found.close()
        for each in tuple(peers):
            each.cancel()
        if container is not None:
            container.close()
        server.close()
        await asyncio.sleep(0)


def post(body: bytes, *headers: str, path: str = INFER) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body
