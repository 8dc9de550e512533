"""Event loop wake-up from threads, without contention for the GIL.

`call_soon_threadsafe` wakes the loop while the calling thread holds the GIL: on one core the loop's thread runs at
once, finds the lock taken and sleeps again. A write to an eventfd releases the GIL during the system call.
"""

import asyncio
import os
from collections.abc import Callable


class LoopWakeup:
    """Called in a thread, handled on the event loop. Made on the loop, closed from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_wake: Callable[[], None]) -> None:
        self._loop = loop
        self._on_wake = on_wake
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        loop.add_reader(self._fd, self._woken)

    def wake(self) -> None:
        """Schedule a call of `on_wake`; several wakes before it count as one."""
        os.eventfd_write(self._fd, 1)

    def close(self) -> None:
        """Wake no more; earlier wakes are still handled."""
        try:
            self._loop.call_soon_threadsafe(self._close)
        except RuntimeError:  # the loop has ended and handles nothing more
            os.close(self._fd)

    def _woken(self) -> None:
        os.eventfd_read(self._fd)
        self._on_wake()

    def _close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._on_wake()
