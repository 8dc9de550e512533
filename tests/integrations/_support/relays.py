"""A relay as a process in its sandbox, and servers for it to reach."""

import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from integrations.relay import start
from integrations.relay.start import Target
from integrations.sandbox.command import command


@contextmanager
def relaying(folder: Path, target: Target, *, idle_s: float = 60.0) -> Iterator[Path]:
    """Yield the socket of a relay to one target; what it logs is in `relay.log`."""
    path = folder / "relay"
    with closing(start.listening(path)) as listener, (folder / "relay.log").open("wb") as log:
        asked = command(start.command([(listener.fileno(), target)], idle_s=idle_s), sandbox=start.sandbox())
        process = subprocess.Popen(asked, pass_fds=[listener.fileno()], env={}, stdout=log, stderr=log)
    try:
        yield path
        assert process.poll() is None, (folder / "relay.log").read_text()
    finally:
        process.kill()
        process.wait()


@contextmanager
def serving(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Yield the port of a server that does `serve` with each connection, in a thread of its own."""
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0), backlog=256) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threads.append(threading.Thread(target=handle, args=(connection,)))
                    threads[-1].start()

        def handle(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                serve(connection)

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            accepting.join()
    for thread in threads:
        thread.join(20)


def echo(connection: socket.socket) -> None:
    """Send back what comes until it ends, then say that it ended."""
    while content := connection.recv(1 << 16):
        connection.sendall(content)
    connection.sendall(b"end")


@contextmanager
def connected(path: Path) -> Iterator[socket.socket]:
    """Yield a connection to a Unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(path))
        yield client


def received(client: socket.socket) -> bytes:
    """Return all that comes until the end."""
    content = bytearray()
    with suppress(ConnectionResetError):
        while part := client.recv(1 << 16):
            content += part
    return bytes(content)
