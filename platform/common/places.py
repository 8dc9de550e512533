"""Places for threads that compute: few of many have one at a time, since the interpreter runs one thread at a time.

Threads that all want the interpreter take longer together than one after the other, and keep it from those that cannot
wait. A thread gives its place up while it waits for another machine.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_own = threading.local()


class Places:
    """A number of places."""

    def __init__(self, count: int) -> None:
        self._free = threading.BoundedSemaphore(count)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have a place meanwhile, but for the time `waiting`; waits for one first."""
        with self._free:
            _own.places = self._free
            try:
                yield
            finally:
                _own.places = None


@contextmanager
def waiting() -> Iterator[None]:
    """Let another thread have this one's place meanwhile, if it has one."""
    places: threading.BoundedSemaphore | None = getattr(_own, "places", None)
    if places is None:
        yield
        return
    _own.places = None
    places.release()
    try:
        yield
    finally:
        places.acquire()
        _own.places = places
