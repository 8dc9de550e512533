"""How much content of large requests one connection may hold: who asks for more waits until others are done."""

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from serving_runtime.protocol.http2.stream import Stream

MOST_BYTES = 128 * 1024 * 1024
"""Of windows beyond the default ones; one stream alone may have more, since its request could not be had otherwise."""


class InboundBudget:
    """Grants windows to the streams of one connection.

    Attributes:
        holders: the streams that hold something, and how many bytes; where there are none nobody waits.
    """

    def __init__(self) -> None:
        self.holders: dict[Stream, int] = {}
        self._held_bytes = 0
        self._waiting: deque[tuple[Stream, int]] = deque()

    def ask(self, stream: "Stream", size_bytes: int) -> None:
        """Widen a stream's window, now or when there is room; what it holds is held until `release`."""
        self._waiting.append((stream, size_bytes))
        self._grant()

    def release(self, stream: "Stream") -> None:
        """Take note that a stream holds nothing any more of what it asked for."""
        self._held_bytes -= self.holders.pop(stream, 0)
        self._grant()

    def _grant(self) -> None:
        while self._waiting:
            stream, size_bytes = self._waiting[0]
            if not stream.finished:
                if self.holders and self._held_bytes + size_bytes > MOST_BYTES:
                    return
                self.holders[stream] = self.holders.get(stream, 0) + size_bytes
                self._held_bytes += size_bytes
                stream.grant(size_bytes)
            self._waiting.popleft()
