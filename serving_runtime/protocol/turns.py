"""Fair reading (round-robin) from connections that send much: a few of them per turn of the event loop, in FIFO order.

Without it a turn of the loop reads from all of them, and clients of small requests wait for all their data.
"""

import asyncio
from collections import deque
from collections.abc import Callable

AT_ONCE = 2
"""Connections that read on in one turn of the loop; each reads half a megabyte at most."""


class ReadTurns:
    """The connections of one port that paused reading until their turn."""

    __slots__ = ("_loop", "_scheduled", "_waiting")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def wait(self, read_on: Callable[[], None]) -> None:
        """Call `read_on` in a later turn of the loop, after those that wait already."""
        self._waiting.append(read_on)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self._waiting.popleft()()
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            self._loop.call_soon(self._next)
