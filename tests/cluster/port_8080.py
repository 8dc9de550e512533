"""Who listens at port 8080 of whatever address: one of all test runs on this machine at a time.

Envoy Gateway tells its metrics there at every address, and the control plane's web listens there at its pods'.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers import clients


@contextmanager
def port_8080() -> Iterator[None]:
    """Wait for the port, and keep it from others until the block ends."""
    clients.cache().mkdir(parents=True, exist_ok=True)
    with (clients.cache() / "port-8080.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
