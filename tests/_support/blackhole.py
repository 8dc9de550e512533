"""A server that takes no connection: a listening socket with a full backlog, so that the kernel drops further SYNs."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_ANSWERS_WITHIN_S = 0.3
_MOST = 16


@contextmanager
def blackhole() -> Iterator[int]:
    """Give a port of 127.0.0.1 at which connecting neither succeeds nor fails."""
    with ExitStack() as held, socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(_MOST):
            client = held.enter_context(socket.socket())
            client.settimeout(_ANSWERS_WITHIN_S)
            try:
                client.connect(server.getsockname())
            except TimeoutError:
                yield int(server.getsockname()[1])
                return
        raise AssertionError(f"a backlog of 0 took {_MOST} connections")
