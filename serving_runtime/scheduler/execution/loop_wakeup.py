"""How a thread calls the event loop without keeping it waiting.

`call_soon_threadsafe` wakes the loop while the calling thread holds the interpreter's lock: on one core the loop's
thread runs at once, finds the lock taken and sleeps again. A write to an eventfd gives the lock up while it rings.
"""

import asyncio
import os
from collections.abc import Callable


class Bell:
    """Rung in a thread, heard on the event loop. Made on the loop, silenced from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_rung: Callable[[], None]) -> None:
        self._loop = loop
        self._on_rung = on_rung
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        loop.add_reader(self._fd, self._rung)

    def ring(self) -> None:
        """Have `on_rung` called; once where it was rung several times before that."""
        os.eventfd_write(self._fd, 1)

    def silence(self) -> None:
        """Ring no more; what was rung before is heard."""
        try:
            self._loop.call_soon_threadsafe(self._close)
        except RuntimeError:  # the loop has ended, and nobody hears anything any more
            os.close(self._fd)

    def _rung(self) -> None:
        os.eventfd_read(self._fd)
        self._on_rung()

    def _close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._on_rung()
