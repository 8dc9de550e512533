"""Interface of gRPC servers: separates the services from their transport."""

import socket
from typing import Protocol


class GrpcServer(Protocol):
    """Services on one socket: grpcio's server, or the one on our own HTTP/2."""

    def bind(self, address: str, port: int) -> int:
        """Return the port bound, a free one for port 0; raises OSError when it is taken."""
        ...

    def take(self, sock: socket.socket) -> None:
        """Use a bound Unix socket in place of a port; raises OSError when that is not possible."""
        ...

    async def start(self) -> None:
        """Accept calls."""

    async def stop(self, grace_s: float) -> None:
        """Stop accepting, send GOAWAY, and return when the calls in flight are done or the grace is over."""
