"""What attacks on this machine try to reach."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest


@pytest.fixture
def port() -> Iterator[int]:
    """Listen at the machine's loopback, as the control plane does."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        thread = threading.Thread(target=_accept_all, args=(server,), daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def _accept_all(server: socket.socket) -> None:
    try:
        while True:
            server.accept()[0].close()
    except OSError:  # it was shut down
        return
