"""The seam between the services and what speaks gRPC for them."""

from typing import Protocol


class GrpcServer(Protocol):
    """Services on one port: grpcio's server, or one on HTTP/2 of our own."""

    def bind(self, address: str, port: int) -> int:
        """Return the port bound, a free one for port 0; raises OSError when it is taken."""
        ...

    async def start(self) -> None:
        """Take calls."""

    async def stop(self, grace_s: float) -> None:
        """Stop accepting, tell clients to go, and return when the calls in flight are done or the grace is over."""
