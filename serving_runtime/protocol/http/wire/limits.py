"""How much and how slowly a client may send, and when it is too much."""

from dataclasses import dataclass

MAX_HEADER_BYTES = 64 * 1024

MAX_PIPELINED = 16
"""Requests read ahead of the one being answered, per connection, before reading pauses."""

LINGER_S = 5.0
"""How long a connection is kept for its client to read why it was refused, while what it still sends is thrown away."""

MUCH_BYTES = 128 * 1024
"""Of one read: behind so much, other connections have their turn."""

DISCARD_EVERY_S = 0.002
"""Between two reads of what is thrown away, of all connections: clients get their refusals, others their answers."""

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
    """Return whether a client that reads nothing of its answer for so long is given up."""
    return paused_s > _GRACE_S
