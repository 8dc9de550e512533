"""Places for threads that compute: few of many have one at a time, since the interpreter runs one thread at a time.

Threads that all want the interpreter take longer together than one after the other, and keep it from those that cannot
wait. A thread gives its place up while it waits for another machine.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

_own = threading.local()


class Places:
    """A number of places; the thread that waits longest has the next one.

    A semaphore of the standard library lets others go first, again and again: a waiting thread must first wake up.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[threading.Lock] = deque()
        self._lock = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have a place meanwhile, but for the time `waiting`; waits for one first."""
        self.take()
        _own.places = self
        try:
            yield
        finally:
            _own.places = None
            self.leave()

    def take(self) -> None:
        """Take a place, as soon as it is this thread's turn."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            called = threading.Lock()
            called.acquire()
            self._waiting.append(called)
        called.acquire()

    def leave(self) -> None:
        """Hand the place over."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1


@contextmanager
def waiting() -> Iterator[None]:
    """Let another thread have this one's place meanwhile, if it has one."""
    places: Places | None = getattr(_own, "places", None)
    if places is None:
        yield
        return
    _own.places = None
    places.leave()
    try:
        yield
    finally:
        places.take()
        _own.places = places
