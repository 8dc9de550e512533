"""A Redis of its own on a free port or a Unix socket, from the machine's package; it keeps nothing."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers.parts import free_port, program

_START_S = 60.0


@dataclass
class Redis:
    """One server; `stop` and `start` may follow each other, the port stays and the data goes."""

    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        """Return the address as Fairlead's setting takes it."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.process = _started(server_program(), "--bind", "127.0.0.1", "--port", str(self.port))
        _wait(self.process, lambda: _answers(socket.AF_INET, ("127.0.0.1", self.port)), f"port {self.port}")

    def stop(self) -> None:
        """End it at once, as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = None


@contextmanager
def redis() -> Iterator[Redis]:
    """Give a running server.

    Raises:
        MissingPartError: Redis is not installed.
    """
    server = Redis()
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def redis_socket() -> Iterator[str]:
    """Give the address of a running server by its Unix socket, which every network namespace reaches.

    The address ends with the number of a database; a test process puts its own there.

    Raises:
        MissingPartError: Redis is not installed.
    """
    program = server_program()
    with tempfile.TemporaryDirectory(prefix="fairlead-redis-") as folder:
        path = Path(folder) / "socket"
        process = _started(program, "--port", "0", "--unixsocket", str(path), "--databases", "64")
        try:
            _wait(process, lambda: _answers(socket.AF_UNIX, str(path)), str(path))
            yield f"redis+socket://{path}?virtual_host=0"
        finally:
            process.kill()
            process.wait()


def _started(*command: str) -> "subprocess.Popen[bytes]":
    keeps_nothing = ["--save", "", "--appendonly", "no"]
    return subprocess.Popen([*command, *keeps_nothing], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _wait(process: "subprocess.Popen[bytes]", answers: Callable[[], bool], place: str) -> None:
    deadline = time.monotonic() + _START_S
    while not answers():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"redis-server on {place} did not come up")
        time.sleep(0.02)


def _answers(family: socket.AddressFamily, address: str | tuple[str, int]) -> bool:
    with socket.socket(family) as connection, suppress(OSError):
        connection.settimeout(1)
        connection.connect(address)
        connection.sendall(b"PING\r\n")
        return connection.recv(16).startswith(b"+PONG")
    return False


def server_program() -> str:
    """Return the server's program; raises MissingPartError."""
    return str(program("redis-server", "redis-server", _folders()))


def _folders() -> list[Path]:
    return [Path(part) for part in [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin"] if part]
