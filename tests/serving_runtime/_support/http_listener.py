"""A listener on a real socket with an application that answers when told, and raw clients for it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from serving_runtime.common.errors import NotFound
from serving_runtime.protocol.http.wire.connection import Connection
from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.listener import Listener
from serving_runtime.protocol.http.wire.message import Application, Reply, Request, Response
from serving_runtime.protocol.http.wire.reader import KeepsHeader

GET = b"GET /now HTTP/1.1\r\nHost: x\r\n\r\n"

App = TypeVar("App", bound=Application)


def post(body: bytes, *headers: str, path: str = "/later") -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until the condition holds: what a server has read off a socket it tells nobody."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


class Ticket:
    """A request that waits for its answer."""

    def __init__(self, request: Request, reply: Reply) -> None:
        self.request = request
        self.body = bytes(memoryview(request.body)[request.body_offset :])
        self.reply = reply
        self.cancelled = asyncio.Event()

    def cancel(self) -> None:
        self.cancelled.set()

    def answer(self) -> None:
        body = self.request.target + b" " + self.body
        self.reply(Response(200, b"", (body,), len(body)))


class Desk:
    """Answers /now at once, /missing and /broken with errors, anything else when the test says so."""

    def __init__(self) -> None:
        self.tickets: asyncio.Queue[Ticket] = asyncio.Queue()

    def handle(self, request: Request, reply: Reply) -> Ticket | None:
        if request.target == b"/missing":
            raise NotFound("nothing here")
        if request.target == b"/broken":
            raise RuntimeError("a mistake of ours")
        ticket = Ticket(request, reply)
        if request.target == b"/now":
            ticket.answer()
            return None
        self.tickets.put_nowait(ticket)
        return ticket

    async def next(self) -> Ticket:
        return await asyncio.wait_for(self.tickets.get(), 10)


class Client:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, content: bytes) -> None:
        self.writer.write(content)

    async def head(self) -> tuple[int, dict[str, str]]:
        """Return status and headers of the next answer."""
        head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 10)).decode("latin-1")
        status, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        return int(status.split()[1]), headers

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the next answer."""
        status, headers = await self.head()
        body = await asyncio.wait_for(self.reader.readexactly(int(headers.get("content-length", "0"))), 10)
        return status, headers, body

    async def chunk(self) -> bytes:
        """Return the next chunk of an answer in pieces, empty at its end."""
        length = int(await asyncio.wait_for(self.reader.readuntil(b"\r\n"), 10), 16)
        return (await asyncio.wait_for(self.reader.readexactly(length + 2), 10))[:-2]

    async def ended(self) -> bool:
        """Return whether the server ended the connection, without a further byte."""
        return await asyncio.wait_for(self.reader.read(), 10) == b""


class Served(Generic[App]):
    """A listener with its application, and clients for it."""

    def __init__(self, application: App, listener: Listener, port: int) -> None:
        self.application = application
        self.listener = listener
        self._port = port
        self._clients: list[Client] = []

    async def client(self, content: bytes = b"") -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self._port))
        self._clients.append(client)
        client.send(content)
        return client

    async def connection(self) -> Connection:
        await until(lambda: bool(self.listener._connections))
        return next(iter(self.listener._connections))

    async def close(self) -> None:
        self.listener.stop_accepting()
        self.listener.abort()
        for client in self._clients:
            client.writer.close()
        await asyncio.sleep(0)


@asynccontextmanager
async def serving(
    application: App, limits: HttpLimits, keeps_header: KeepsHeader | None = None
) -> AsyncIterator[Served[App]]:
    """Serve an application on a free local port until the block ends."""
    sock = socket.create_server(("127.0.0.1", 0))
    listener = Listener(application, sock, limits, keeps_header)
    await listener.start()
    everything = Served(application, listener, sock.getsockname()[1])
    try:
        yield everything
    finally:
        await everything.close()
