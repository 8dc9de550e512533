"""Event loop wake-up from threads, without contention for the GIL.

`call_soon_threadsafe` wakes the loop while the calling thread holds the GIL: on one core the loop's thread runs at
once, finds the lock taken and sleeps again. A write to an eventfd releases the GIL during the system call.
"""

import asyncio
import os
from collections.abc import Callable


class Bell:
    """Rung in a thread, handled on the event loop. Made on the loop, silenced from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_rung: Callable[[], None]) -> None:
        self._loop = loop
        self._on_rung = on_rung
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        loop.add_reader(self._fd, self._rung)

    def ring(self) -> None:
        """Schedule a call of `on_rung`; several rings before it count as one."""
        os.eventfd_write(self._fd, 1)

    def silence(self) -> None:
        """Ring no more; earlier rings are still handled."""
        try:
            self._loop.call_soon_threadsafe(self._close)
        except RuntimeError:  # the loop has ended and handles nothing more
            os.close(self._fd)

    def _rung(self) -> None:
        os.eventfd_read(self._fd)
        self._on_rung()

    def _close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._on_rung()
