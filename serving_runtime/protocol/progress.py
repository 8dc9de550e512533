"""Receive timeout of a message, over HTTP/1.1 and HTTP/2, extended by its progress."""

_GRACE_S = 30.0
_SLOWEST_BYTES_PER_S = 16 * 1024


class Progress:
    """A message during its arrival.

    It has 30 s at first; each 16 KiB add a second, and there are never more than 30 s left: a client that has sent much
    may not stall for longer than others.

    Attributes:
        since: when it began, in seconds.
    """

    __slots__ = ("_left_s", "_looked_at", "_received_bytes", "since")

    def __init__(self, since: float, received_bytes: int = 0) -> None:
        self.since = self._looked_at = since
        self._left_s = _GRACE_S
        self._received_bytes = received_bytes

    def too_slow(self, now: float, received_bytes: int) -> bool:
        """Return whether a message with so much received has run out of time; called again and again."""
        left_s = self._left_s - (now - self._looked_at)
        left_s += max(0, received_bytes - self._received_bytes) / _SLOWEST_BYTES_PER_S
        self._left_s, self._looked_at, self._received_bytes = min(left_s, _GRACE_S), now, received_bytes
        return left_s < 0
