"""HTTP/2 limits of one connection, and of the rate of frames that bring its requests no further."""

MAX_HEADER_BLOCK_BYTES = 64 * 1024
"""Size of an encoded header block, in any number of CONTINUATION frames."""

CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024
"""Window of incoming content; memory is bounded by the windows of the streams."""

HIGH_WATER_BYTES = 256 * 1024
"""Bytes that the socket has not taken: above it content waits in its stream."""

MUCH_BYTES = 128 * 1024
"""Size of one read after which other connections have their turn."""

MAX_UNSENT_BYTES = 256 * 1024 * 1024
"""Answers that wait for the client's windows: above it no further request of the client is begun."""

DEAF_BYTES = 1024 * 1024
"""Bytes that the socket has not taken, answers to control frames included: above it reading stops."""

MAX_STREAMS = 1024
"""Concurrent requests; further ones are refused, and may be tried again."""


class Patience:
    """The server's remaining patience with one client.

    Frames that cost work and bring no request further use it up: SETTINGS, PING, PRIORITY, RST_STREAM, WINDOW_UPDATE,
    empty DATA and CONTINUATION, requests that are refused. It grows with time, and with frames sent to the client,
    since WINDOW_UPDATE answers DATA.
    """

    _MOST = 2000.0
    _PER_S = 100.0
    _PER_FRAME_SENT = 4

    def __init__(self, now: float) -> None:
        self._left = self._MOST
        self._since = now

    def spend(self, now: float, frames_sent: int) -> bool:
        """Return whether one more such frame is tolerated.

        Args:
            now: the loop's time, in seconds.
            frames_sent: how many frames with content or headers were sent since the last call.
        """
        grown = (now - self._since) * self._PER_S + frames_sent * self._PER_FRAME_SENT
        self._left = min(self._MOST, self._left + grown) - 1
        self._since = now
        return self._left >= 0
