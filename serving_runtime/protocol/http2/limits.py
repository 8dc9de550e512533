"""How much one connection may ask for, and how often it may send frames that bring its requests no further."""

from dataclasses import dataclass

MAX_HEADER_BLOCK_BYTES = 64 * 1024
"""Of a header block as it is sent, in however many CONTINUATION frames."""

CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024
"""Of content on the way to the server; what bounds memory are the windows of the streams."""

HIGH_WATER_BYTES = 256 * 1024
"""Of bytes the socket has not taken: above it content waits in its stream."""

MAX_UNSENT_BYTES = 256 * 1024 * 1024
"""Of answers that wait for the client's windows: above it no further request of its is begun."""

DEAF_BYTES = 1024 * 1024
"""Of bytes the socket has not taken, answers to control frames among them: above it nothing more is read."""

STUCK_S = 30.0
"""How long a client may take nothing of what there is for it before it is given up."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What a connection is held to.

    Attributes:
        max_streams: requests at once; further ones are refused, and may be tried again.
        min_ping_interval_s: a client that pings more often without being sent anything strikes.
        max_ping_strikes: that many are let pass, the next ends the connection; 0 for any number.
    """

    max_streams: int = 1024
    min_ping_interval_s: float = 300.0
    max_ping_strikes: int = 2


class Patience:
    """What is left of the server's patience with one client.

    Frames that cost work and bring no request further use it up: SETTINGS, PING, PRIORITY, RST_STREAM, WINDOW_UPDATE,
    empty DATA and CONTINUATION, requests that are refused. It grows again with time, and with what is sent
    to the client, since WINDOW_UPDATE answers DATA.
    """

    _MOST = 2000.0
    _PER_S = 100.0
    _PER_FRAME_SENT = 4

    def __init__(self, now: float) -> None:
        self._left = self._MOST
        self._since = now

    def spend(self, now: float, frames_sent: int) -> bool:
        """Return whether one more such frame is borne.

        Args:
            now: the loop's time, in seconds.
            frames_sent: how many frames with content or headers went out since the last call.
        """
        grown = (now - self._since) * self._PER_S + frames_sent * self._PER_FRAME_SENT
        self._left = min(self._MOST, self._left + grown) - 1
        self._since = now
        return self._left >= 0


class PingStrikes:
    """Counts pings that come too soon (gRPC: keepalive enforcement of servers)."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._strikes = 0
        self._last: float | None = None

    def excused(self) -> None:
        """Take note that something was sent to the client since its last ping."""
        self._strikes = 0
        self._last = None

    def borne(self, now: float) -> bool:
        """Return whether a ping at this time is one that a client may send."""
        last, self._last = self._last, now
        if last is not None and now - last < self._limits.min_ping_interval_s:
            self._strikes += 1
        return not self._limits.max_ping_strikes or self._strikes <= self._limits.max_ping_strikes
