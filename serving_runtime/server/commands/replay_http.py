"""The command `replay` over HTTP, for a caller on another machine.

    GET  /v2/health/live, /v2/health/ready    200 once the model is loaded
    POST /replay                              a line as on standard input; answers what the line on standard output has

It has no other endpoint, so it is no server for clients. It exits 0 on a termination signal, and after
`--idle-timeout-secs` without a request: its caller is gone then.
"""

import argparse
import asyncio
import logging
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from serving_runtime.common.errors import InvalidArgument, NotFound
from serving_runtime.common.request import Cancellable
from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.listener import Listener
from serving_runtime.protocol.http.wire.message import JSON, Reply, Request, Response, error_response, text_error
from serving_runtime.server.flags.types import EVERYWHERE, address, count, port_number
from serving_runtime.server.sockets import listen, place, write_port_file

logger = logging.getLogger(__name__)

_HEALTH = (b"/v2/health/live", b"/v2/health/ready")
_PATH = b"/replay"
_LOOK_S = 0.25
_MAX_BODY_BYTES = 1 << 30
"""Memory of a request accepted with at most 64 MiB: as JSON its numbers can take several times as much."""

Answer = Callable[[bytes], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Its address, and its idle timeout."""

    address: str
    port: int
    idle_timeout_s: int
    port_file: Path | None

    @classmethod
    def of(cls, found: argparse.Namespace) -> "Endpoint":
        """Return the options of the command line."""
        return cls(found.http_address, found.http_port, found.idle_timeout_secs, found.port_file)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    group = parser.add_argument_group("HTTP, in place of standard input and output")
    group.add_argument(
        "--http-port", type=port_number, metavar="N", help="port that accepts POST /replay, 0 for a free one"
    )
    group.add_argument(
        "--http-address", type=address, default=EVERYWHERE, metavar="IP", help="address to listen on (::, all)"
    )
    group.add_argument(
        "--idle-timeout-secs",
        type=count,
        default=120,
        metavar="N",
        help="ends after so many seconds without a request (120)",
    )
    group.add_argument("--port-file", type=Path, metavar="FILE", help="file for the port, as JSON, once it listens")


async def serve(endpoint: Endpoint, sock: socket.socket, answer: Answer) -> None:
    """Serve on a bound socket until terminated or idle for too long."""
    application = _Application(answer)
    listener = Listener(application, sock, HttpLimits(max_body_bytes=_MAX_BODY_BYTES))
    await listen(listener, endpoint.address, place(sock), "http")
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    if endpoint.port_file is not None:
        write_port_file(endpoint.port_file, {"http": place(sock)})
    while not stopped.is_set() and application.idle_s < endpoint.idle_timeout_s:
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), _LOOK_S)
    listener.stop_accepting()
    listener.abort()


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request in progress."""

    task: "asyncio.Task[None]"

    def cancel(self) -> None:
        self.task.cancel()


class _Application:
    """Passes requests to `answer`."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._asked_at = self._loop.time()
        self._running: set[asyncio.Task[None]] = set()

    @property
    def idle_s(self) -> float:
        """Return the idle time; 0 while a request is in progress."""
        return 0.0 if self._running else self._loop.time() - self._asked_at

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        if request.method == b"GET" and request.target in _HEALTH:
            reply(Response(200, b"", (), 0))
            return None
        if request.method != b"POST" or request.target != _PATH:
            raise NotFound(
                f"{request.method.decode('latin-1')} is not offered at this path; a replay takes POST /replay"
            )
        line = bytes(memoryview(request.body)[request.body_offset :])
        task = self._loop.create_task(self._run(line, reply))
        self._running.add(task)
        task.add_done_callback(self._ended)
        return _Asked(task)

    async def _run(self, line: bytes, reply: Reply) -> None:
        try:
            said = await self._answer(line)
        except (ValueError, KeyError, TypeError) as error:
            reply(error_response(InvalidArgument(f"this is no recorded request: {type(error).__name__}: {error}")))
        except Exception:  # a bug of ours: the caller gets an error, the log has the rest
            logger.exception("answering a recorded request failed")
            reply(text_error(500, "internal error"))
        else:
            reply(Response(200, JSON, (said,), len(said)))

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        self._asked_at = self._loop.time()
