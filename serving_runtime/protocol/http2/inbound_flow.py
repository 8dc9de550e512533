"""HTTP/2 inbound flow control: bounds the content of large requests that one connection may hold; excess ones wait."""

from collections import deque
from typing import Protocol

MOST_BYTES = 128 * 1024 * 1024
"""Windows beyond the default ones; a single stream may have more, since its request could not be received otherwise."""


class Receiver(Protocol):
    """Stream that receives content.

    Attributes:
        finished: the answer is complete or no longer wanted.
    """

    finished: bool

    def grant(self, size_bytes: int) -> None:
        """Let the client send that much more."""
        ...


class InboundBudget:
    """Grants windows to the streams of one connection.

    Attributes:
        holders: the streams that hold windows, and how many bytes; while empty, no stream waits.
    """

    def __init__(self) -> None:
        self.holders: dict[Receiver, int] = {}
        self._held_bytes = 0
        self._waiting: deque[tuple[Receiver, int]] = deque()

    def ask(self, stream: Receiver, size_bytes: int) -> None:
        """Widen a stream's window, now or when there is room; the stream holds it until `release`."""
        self._waiting.append((stream, size_bytes))
        self._grant()

    def release(self, stream: Receiver) -> None:
        """Release a stream's windows."""
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
