"""HTTP limits: sizes and rates of clients' input, and timeouts."""

from dataclasses import dataclass

MAX_HEADER_BYTES = 64 * 1024

MAX_PIPELINED = 16
"""Requests read ahead of the one being answered, per connection, before reading pauses."""

LINGER_S = 5.0
"""How long a connection stays open for its client to read a refusal, while its further input is discarded."""

MUCH_BYTES = 128 * 1024
"""Size of one read after which other connections have their turn."""

DISCARD_EVERY_S = 0.002
"""Interval of discarding reads, over all connections: clients get their refusals, others their answers."""

_GRACE_S = 30.0


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits that the command line sets.

    Attributes:
        idle_timeout_s: for a connection without a request; above Envoy's default of an hour for its upstreams, so
            that the proxy, not the server, ends idle connections.
    """

    max_body_bytes: int = 64 * 1024 * 1024
    idle_timeout_s: float = 3660.0


def write_stuck(paused_s: float) -> bool:
    """Return whether to give up a client that reads nothing of its answer for so long."""
    return paused_s > _GRACE_S
