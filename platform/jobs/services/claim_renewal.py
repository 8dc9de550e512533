"""Lease renewal: a thread renews a claim while the work runs, so that a dead worker's job is soon restarted."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import DatabaseError, connection

logger = logging.getLogger(__name__)
LEASE = timedelta(seconds=7)
"""With sweeps every 2 s another worker begins what a dead one left within 10 s."""
RENEW_EVERY_S = 1.0


@contextmanager
def held(name: str, renew: Callable[[], bool], *, every_s: float) -> Iterator[threading.Event]:
    """Call `renew` periodically meanwhile; the event is set once the claim is lost.

    The caller's connection to the database is closed, since the work may take hours: its next query opens another.
    """
    if not connection.in_atomic_block:
        connection.close()
    done, lost = threading.Event(), threading.Event()
    thread = threading.Thread(target=_renew_until, args=(name, renew, every_s, done, lost), name=name, daemon=True)
    thread.start()
    try:
        yield lost
    finally:
        done.set()
        thread.join()


def _renew_until(
    name: str, renew: Callable[[], bool], every_s: float, done: threading.Event, lost: threading.Event
) -> None:
    try:
        while not done.wait(every_s):
            try:
                if not renew():
                    lost.set()
                    return
            except DatabaseError:
                logger.warning("%s: the claim was not renewed", name, exc_info=True)
    finally:
        connection.close()
