"""Model version state machine: validation with retries. Pure: no clock, no database, no runtime.

                       accepted
    PENDING ───────────────────────────────▶ READY
     │  ▲ │
     │  └─┘ could not be checked, or ended its worker: again after a growing delay
     │
     └── refused by the runtime, could not be checked or ended its worker MAX_ATTEMPTS times ──▶ REJECTED

READY is final: a version is immutable, and so is the outcome of its check. REJECTED is checked again on request, and by
a push of the same files where the reason is the installation's: a missing library, or what it does not allow.

A check whose worker ended (its lease expired) is parked: it waits, so that others have their turn, and after its last
attempt only a request checks it again, since a push of a CI job would end further workers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

MAX_ATTEMPTS = 3
_FIRST_DELAY = timedelta(seconds=5)
_FIRST_PARKED = timedelta(seconds=30)
_AGAIN = "push the same files again, or run `fairlead versions recheck`, to have it checked again"


class Status(StrEnum):
    """States of a version."""

    PENDING = "PENDING"
    READY = "READY"
    REJECTED = "REJECTED"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The runtime can serve the model and says how."""

    signature: Mapping[str, object]
    platform: str
    profile: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """The runtime cannot serve the model; `reason` is its own sentence.

    Attributes:
        of_installation: it lacks a library, or does not allow what the model needs; else the refusal is permanent.
    """

    reason: str
    of_installation: bool = False


@dataclass(frozen=True, slots=True)
class Unchecked:
    """The check has no result: the runtime could not be run, or did not finish in time."""

    reason: str


Outcome = Accepted | Refused | Unchecked


@dataclass(frozen=True, slots=True)
class CheckState:
    """State of a version's check, from its row.

    Attributes:
        attempts: counted at their begin, so that one that crashes its worker counts too.
        reason: why the version is not READY; may be empty.
        next_check_at: not before this time; None once the check is over.
        of_installation: REJECTED for what the installation lacks, not for the model.
    """

    status: Status
    attempts: int
    reason: str
    next_check_at: datetime | None
    of_installation: bool = False


def may_begin(state: CheckState, now: datetime) -> bool:
    """Return whether a check begins at `now`."""
    return state.status is Status.PENDING and state.next_check_at is not None and state.next_check_at <= now


def begin(state: CheckState, now: datetime, lease: timedelta) -> CheckState:
    """Return the state while a check runs: another may begin once `lease` has expired without an end.

    A state without attempts left is REJECTED instead: its checks began and never ended.
    """
    if state.attempts >= MAX_ATTEMPTS:
        return _given_up(state, state.reason or "the check began and did not end")
    return replace(state, attempts=state.attempts + 1, next_check_at=now + lease)


def crashed(state: CheckState, now: datetime) -> CheckState:
    """Return the state after the lease of a check expired: its worker ended, or was stopped, while it ran."""
    if state.attempts >= MAX_ATTEMPTS:
        text = (
            f"its check ended its worker in the last of {state.attempts} attempts, as a model may that takes all "
            "memory; it is parked, so that it holds up no other check; `fairlead versions recheck` checks it again"
        )
        return replace(state, status=Status.REJECTED, reason=text, next_check_at=None)
    wait = _FIRST_PARKED * (1 << max(0, state.attempts - 1))
    text = f"its check ended its worker; parked for {wait.total_seconds():.0f} s, then checked again"
    return replace(state, reason=text, next_check_at=now + wait)


def end(state: CheckState, outcome: Outcome, now: datetime) -> CheckState:
    """Return the state after a check that `begin` began ended with `outcome`; a final state stays as it is."""
    if state.status is not Status.PENDING:
        return state
    match outcome:
        case Accepted():
            return replace(state, status=Status.READY, reason="", next_check_at=None)
        case Refused(reason, of_installation=True):
            text = (
                f"{reason.rstrip('.')}; this installation lacks that, the model may be well; once it has it, {_AGAIN}"
            )
            return replace(state, status=Status.REJECTED, reason=text, next_check_at=None, of_installation=True)
        case Refused(reason):
            return replace(state, status=Status.REJECTED, reason=reason, next_check_at=None)
        case Unchecked(reason):
            if state.attempts >= MAX_ATTEMPTS:
                return _given_up(state, reason)
            return replace(state, reason=reason, next_check_at=now + _delay(state.attempts))


def again(now: datetime) -> CheckState:
    """Return the state of a REJECTED version that is checked again."""
    return CheckState(Status.PENDING, 0, "", now)


def _given_up(state: CheckState, reason: str) -> CheckState:
    text = (
        f"the model could not be checked in {state.attempts} attempts, the last time because {reason.rstrip('.')}; "
        f"{_AGAIN}"
    )
    return replace(state, status=Status.REJECTED, reason=text, next_check_at=None, of_installation=True)


def _delay(attempts: int) -> timedelta:
    """Return the back-off: 5 s after the first attempt and twice as long after each more."""
    factor: int = 1 << (attempts - 1)
    return _FIRST_DELAY * factor
