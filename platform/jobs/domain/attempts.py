"""Job state machine with bounded retries, for work with a model. Pure: no clock, no database, no runtime.

                 it came to its end
PENDING --------------------------------> DONE
 |  ^ |
 |  '-' broke off (its worker ended): again, from its beginning
 |
 '-- it cannot be done, was stopped, or broke off MAX_ATTEMPTS times --> FAILED
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

MAX_ATTEMPTS = 3
STOPPED = "somebody stopped it"
"""Failure reason of a normal end."""


class Status(StrEnum):
    """States of a job."""

    PENDING = "PENDING"
    DONE = "DONE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class AttemptState:
    """A job's state, from its row.

    Attributes:
        attempts: counted at their begin, so that one that crashes its worker counts too.
        next_try_at: not before this time; None once it has ended.
    """

    status: Status
    attempts: int
    reason: str
    next_try_at: datetime | None


def may_begin(state: AttemptState, now: datetime) -> bool:
    """Return whether an attempt begins at `now`."""
    return state.status is Status.PENDING and state.next_try_at is not None and state.next_try_at <= now


def begin(state: AttemptState, now: datetime, lease: timedelta) -> AttemptState:
    """Return the state while an attempt runs: another may begin once `lease` has expired without an end."""
    if state.attempts >= MAX_ATTEMPTS:
        reason = state.reason or "its worker ended each time"
        return failed(state, f"it broke off {state.attempts} times, the last time because {reason}")
    return replace(state, attempts=state.attempts + 1, next_try_at=now + lease)


def broke_off(state: AttemptState, reason: str, now: datetime) -> AttemptState:
    """Return the state after an attempt that broke off without a result."""
    return replace(state, reason=reason, next_try_at=now)


def failed(state: AttemptState, reason: str) -> AttemptState:
    """Return the state of a failed job."""
    return replace(state, status=Status.FAILED, reason=reason, next_try_at=None)


def done(state: AttemptState) -> AttemptState:
    """Return the state of a completed job."""
    return replace(state, status=Status.DONE, reason="", next_try_at=None)
