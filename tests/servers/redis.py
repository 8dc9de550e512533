"""A Redis of its own on a free port, from the machine's package; it keeps nothing."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
        command = [server_program(), "--bind", "127.0.0.1", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, "--save", "", "--appendonly", "no"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + _START_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"redis-server on port {self.port} did not come up")
            time.sleep(0.02)

    def stop(self) -> None:
        """End it at once, as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


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


def server_program() -> str:
    """Return the server's program; raises MissingPartError."""
    return str(program("redis-server", "redis-server", _folders()))


def _folders() -> list[Path]:
    return [Path(part) for part in [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin"] if part]
