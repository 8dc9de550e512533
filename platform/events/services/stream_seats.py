"""Limits of open live streams: by API token, and of this process.

A stream holds a seat until its response ends; one that is dropped before its first byte frees its seat when it is
garbage-collected.
"""

import threading
from collections.abc import Hashable
from weakref import WeakSet

from common.errors import TooManyRequests

RETRY_S = 30


class Seat:
    """The right to one open stream."""

    def __init__(self, holder: Hashable) -> None:
        self.holder = holder


class Seats:
    """Seats of this process; safe to use from several threads."""

    def __init__(self) -> None:
        self._taken: WeakSet[Seat] = WeakSet()
        self._lock = threading.Lock()

    def take(self, holder: Hashable, *, of_holder: int, of_process: int) -> Seat:
        """Return a seat for `holder`; raises TooManyRequests where it, or the process, has as many as allowed.

        Args:
            of_holder, of_process: the limits; 0 for none.
        """
        with self._lock:
            seats = list(self._taken)
            if of_holder and sum(seat.holder == holder for seat in seats) >= of_holder:
                raise TooManyRequests(
                    f"{of_holder} live pages are open with your token; close some", retry_after_s=RETRY_S
                )
            if of_process and len(seats) >= of_process:
                raise TooManyRequests(
                    f"this server has {of_process} live pages open, as many as it keeps; try again later",
                    retry_after_s=RETRY_S,
                )
            seat = Seat(holder)
            self._taken.add(seat)
            return seat

    def free(self, seat: Seat) -> None:
        """Give the seat back; no effect if it was."""
        with self._lock:
            self._taken.discard(seat)

    def __len__(self) -> int:
        return len(self._taken)


SEATS = Seats()
