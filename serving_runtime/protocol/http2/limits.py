"""How much one connection may ask for, and how often it may send frames that bring its requests no further."""

MAX_HEADER_BLOCK_BYTES = 64 * 1024
"""Of a header block as it is sent, in however many CONTINUATION frames."""

CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024
"""Of content on the way to the server; what bounds memory are the windows of the streams."""

HIGH_WATER_BYTES = 256 * 1024
"""Of bytes the socket has not taken: above it content waits in its stream."""

MUCH_BYTES = 128 * 1024
"""Of one read: behind so much, other connections have their turn."""

MAX_UNSENT_BYTES = 256 * 1024 * 1024
"""Of answers that wait for the client's windows: above it no further request of its is begun."""

DEAF_BYTES = 1024 * 1024
"""Of bytes the socket has not taken, answers to control frames among them: above it nothing more is read."""

MAX_STREAMS = 1024
"""Requests at once; further ones are refused, and may be tried again."""


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
