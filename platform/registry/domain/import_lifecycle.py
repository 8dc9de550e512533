"""Import state machine with exponential back-off. Pure: no clock, no database, no network.

                   the files are a version
PENDING ───────────────────────────────────▶ IMPORTED
 │  ▲ │
 │  └─┘ it broke off, or its worker died: again from the start, after a growing delay
 │
 └── it cannot be had, somebody stopped it, or it broke off MAX_ATTEMPTS times ──▶ FAILED
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

MAX_ATTEMPTS = 5
_FIRST_DELAY = timedelta(seconds=5)


class ImportStatus(StrEnum):
    """States of an import."""

    PENDING = "PENDING"
    IMPORTED = "IMPORTED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class ImportState:
    """Progress of an import, from its row.

    Attributes:
        attempts: counted at their begin, so that one that crashes its worker counts too.
        reason: why it is not IMPORTED; may be empty.
        next_try_at: not before this time; None once the state is final.
    """

    status: ImportStatus
    attempts: int
    reason: str
    next_try_at: datetime | None


def may_begin(state: ImportState, now: datetime) -> bool:
    """Return whether an attempt begins at `now`."""
    return state.status is ImportStatus.PENDING and state.next_try_at is not None and state.next_try_at <= now


def begin(state: ImportState, now: datetime, lease: timedelta) -> ImportState:
    """Return the state while an attempt runs; FAILED where all attempts began and none ended."""
    if state.attempts >= MAX_ATTEMPTS:
        return _given_up(state, state.reason or "the worker did not come to its end")
    return replace(state, attempts=state.attempts + 1, next_try_at=now + lease)


def imported(state: ImportState) -> ImportState:
    """Return the state once the files are a version."""
    return replace(state, status=ImportStatus.IMPORTED, reason="", next_try_at=None)


def failed(state: ImportState, reason: str) -> ImportState:
    """Return the state after a permanent failure."""
    return replace(state, status=ImportStatus.FAILED, reason=reason, next_try_at=None)


def broken_off(state: ImportState, reason: str, now: datetime) -> ImportState:
    """Return the state after a temporary failure: the next attempt 5 s later, then twice as long after each."""
    if state.attempts >= MAX_ATTEMPTS:
        return _given_up(state, reason)
    factor: int = 1 << (state.attempts - 1)
    return replace(state, reason=reason, next_try_at=now + _FIRST_DELAY * factor)


def put_back(state: ImportState, now: datetime) -> ImportState:
    """Return the state of an attempt that its worker released unfinished: it is due at once and does not count."""
    return replace(state, attempts=state.attempts - 1, next_try_at=now)


def _given_up(state: ImportState, reason: str) -> ImportState:
    return failed(state, f"it broke off {state.attempts} times, the last time because {reason}; import it again")
