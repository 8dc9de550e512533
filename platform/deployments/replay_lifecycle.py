"""How a replay goes. Pure: no clock, no database, no runtime.

             all answered, and compared
PENDING --------------------------------> DONE
 |  ^ |
 |  '-' broke off (its worker ended): again, from the first request
 |
 '-- the version cannot be started, the recording is gone, or it broke off MAX_ATTEMPTS times --> FAILED
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

MAX_ATTEMPTS = 3


class Status(StrEnum):
    """Where a replay is."""

    PENDING = "PENDING"
    DONE = "DONE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class ReplayState:
    """What a replay's row says.

    Attributes:
        attempts: counted at their begin, so that one that takes its worker down counts too.
        next_try_at: not before this time; None once it has ended.
    """

    status: Status
    attempts: int
    reason: str
    next_try_at: datetime | None


def may_begin(state: ReplayState, now: datetime) -> bool:
    """Return whether an attempt is to begin at `now`."""
    return state.status is Status.PENDING and state.next_try_at is not None and state.next_try_at <= now


def begin(state: ReplayState, now: datetime, lease: timedelta) -> ReplayState:
    """Return the state while an attempt runs: another may begin when `lease` is over and this one has not ended."""
    if state.attempts >= MAX_ATTEMPTS:
        reason = state.reason or "its worker ended each time"
        return failed(state, f"the replay broke off {state.attempts} times, the last time because {reason}")
    return replace(state, attempts=state.attempts + 1, next_try_at=now + lease)


def broke_off(state: ReplayState, reason: str, now: datetime) -> ReplayState:
    """Return the state after an attempt that says nothing of the version."""
    return replace(state, reason=reason, next_try_at=now)


def failed(state: ReplayState, reason: str) -> ReplayState:
    """Return the state of a replay that cannot be made."""
    return replace(state, status=Status.FAILED, reason=reason, next_try_at=None)


def done(state: ReplayState) -> ReplayState:
    """Return the state of a replay whose report is there."""
    return replace(state, status=Status.DONE, reason="", next_try_at=None)
