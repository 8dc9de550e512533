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


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a job is tried, and when again.

    Attributes:
        first_delay: until the second attempt, and twice as long after each further one.
        fails_at_last: whether the last attempt that breaks off fails the job at once, or the next begin does.
        unknown: why attempts broke off whose workers ended without a word.
        advice: what users can do about a job that is given up; follows the reason.
    """

    most: int = MAX_ATTEMPTS
    first_delay: timedelta = timedelta(0)
    fails_at_last: bool = False
    unknown: str = "its worker ended each time"
    advice: str = ""


RETRIES = Retries()


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


def begin(state: AttemptState, now: datetime, lease: timedelta, retries: Retries = RETRIES) -> AttemptState:
    """Return the state while an attempt runs: another may begin once `lease` has expired without an end."""
    if state.attempts >= retries.most:
        return _given_up(state, state.reason or retries.unknown, retries)
    return replace(state, attempts=state.attempts + 1, next_try_at=now + lease)


def broke_off(state: AttemptState, reason: str, now: datetime, retries: Retries = RETRIES) -> AttemptState:
    """Return the state after an attempt that broke off without a result."""
    if retries.fails_at_last and state.attempts >= retries.most:
        return _given_up(state, reason, retries)
    factor: int = 1 << max(0, state.attempts - 1)
    return replace(state, reason=reason, next_try_at=now + retries.first_delay * factor)


def failed(state: AttemptState, reason: str) -> AttemptState:
    """Return the state of a failed job."""
    return replace(state, status=Status.FAILED, reason=reason, next_try_at=None)


def done(state: AttemptState) -> AttemptState:
    """Return the state of a completed job."""
    return replace(state, status=Status.DONE, reason="", next_try_at=None)


def _given_up(state: AttemptState, reason: str, retries: Retries) -> AttemptState:
    why = f"it broke off {state.attempts} times, the last time because {reason}"
    return failed(state, f"{why}; {retries.advice}" if retries.advice else why)
