"""Polling for operations of the control plane."""

import time
from collections.abc import Callable
from typing import TypeVar

from fairlead_cli.errors import StoppedWaiting, TimedOut, Unreachable

T = TypeVar("T")
_SILENCE_S = 60.0


def wait_until(look: Callable[[], T], done: Callable[[T], bool], *, timeout_s: float, every_s: float, what: str) -> T:
    """Return the first of what `look` sees that is `done`; TimedOut when the time is up, StoppedWaiting on Ctrl-C.

    A control plane that restarts in the meantime ends the wait only after a minute of silence.
    """
    try:
        return poll_until(look, done, timeout_s=timeout_s, every_s=every_s, what=what)
    except KeyboardInterrupt:
        raise StoppedWaiting(f"no longer waiting for {what}; it goes on, only the waiting ended") from None


def poll_until(look: Callable[[], T], done: Callable[[T], bool], *, timeout_s: float, every_s: float, what: str) -> T:
    """Return what `wait_until` does, for callers that handle Ctrl-C themselves."""
    deadline = time.monotonic() + timeout_s
    silent_since: float | None = None
    while True:
        now = time.monotonic()
        try:
            seen = look()
        except Unreachable:
            silent_since = silent_since or now
            if now - silent_since > _SILENCE_S:
                raise
        else:
            silent_since = None
            if done(seen):
                return seen
        if now >= deadline:
            raise TimedOut(f"{what} was not there after {timeout_s:g} s; it goes on, only the waiting ended")
        time.sleep(every_s)
