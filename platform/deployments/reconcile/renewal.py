"""Renewal of the leases and claims of this process: one thread renews all of them while their work goes on.

What a process held when it ended is free within `HELD`. Work that hangs is renewed for a while only, and another
process then has its turn.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.db import DatabaseError, connection

logger = logging.getLogger(__name__)
HELD = timedelta(seconds=7)
"""With sweeps every 2 s another process goes on with what an ended one left within 10 s."""
RENEW_EVERY_S = 2.0
_LONGEST_S = 120.0
Renew = Callable[[], bool]


@dataclass(eq=False, slots=True)
class _Renewed:
    """One lease or claim, and how many rounds of renewal it has seen."""

    renew: Renew
    rounds: int = 0


class Renewals:
    """Renews in rounds what is held, every `every_s`, for `longest_s` at most. For several threads at once."""

    def __init__(self, every_s: float = RENEW_EVERY_S, longest_s: float = _LONGEST_S) -> None:
        self._every_s, self._longest_s = every_s, longest_s
        self._lock = threading.Lock()
        self._held: set[_Renewed] = set()
        self._thread: threading.Thread | None = None

    @contextmanager
    def renewed(self, renew: Renew) -> Iterator[None]:
        """Call `renew` periodically meanwhile, until it returns False: what it renews is lost."""
        one = _Renewed(renew)
        with self._lock:
            self._held.add(one)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="renewal", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            self._drop(one)

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(self._every_s):
            with self._lock:
                held = list(self._held)
                for each in held:
                    each.rounds += 1
            due = [each for each in held if each.rounds > 1]  # most work ends before its second round
            for each in due:
                self._renew(each)
            if due:
                connection.close()

    def _renew(self, one: _Renewed) -> None:
        if one.rounds * self._every_s > self._longest_s:
            logger.warning("work goes on for %g s now: what it holds is not renewed any more", self._longest_s)
            self._drop(one)
            return
        try:
            if not one.renew():
                self._drop(one)
        except DatabaseError as error:
            logger.warning("a lease or claim was not renewed, which is tried again: %s", error)
        except Exception:
            logger.exception("a lease or claim was not renewed, which is tried again")

    def _drop(self, one: _Renewed) -> None:
        with self._lock:
            self._held.discard(one)


of_process = Renewals()
