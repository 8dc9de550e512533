"""What replays, tunings, builds and trials have in common as rows that a worker holds (`jobs.domain.attempts`)."""

import uuid
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from django.db.models import QuerySet

from jobs.domain import attempts
from jobs.domain.attempts import AttemptState, Status
from model_jobs.models import Build, Trial, Tuning
from recordings.models import Replay

Attempted: TypeAlias = Replay | Tuning | Build | Trial


def state_of(row: Attempted) -> AttemptState:
    """Return a row as its lifecycle sees it."""
    return AttemptState(Status(row.status), row.attempts, row.reason, row.next_try_at)


def columns_of(state: AttemptState) -> dict[str, object]:
    """Return what a row says of its state."""
    return {
        "status": state.status.value,
        "attempts": state.attempts,
        "reason": state.reason,
        "next_try_at": state.next_try_at,
    }


def due(rows: QuerySet[Any], *, now: datetime, limit: int) -> list[int]:
    """Return the ids of rows that are to be begun, those that waited longest first."""
    waiting = rows.filter(status=Status.PENDING.value, next_try_at__lte=now)
    return list(waiting.order_by("next_try_at", "pk").values_list("pk", flat=True)[:limit])


def begin(row: Tuning | Build | Trial, *, now: datetime, lease: timedelta, **fresh: object) -> uuid.UUID | None:
    """Return a new claim on a row as it was read, which begins with these columns; None where somebody else was first.

    A row whose attempts are used up has FAILED then, and has no claim.
    """
    state = attempts.begin(state_of(row), now, lease)
    begun = state.status is Status.PENDING
    claim = uuid.uuid4() if begun else None
    ended = {} if begun else {"finished_at": now}
    as_read = {"pk": row.pk, "attempts": row.attempts, "next_try_at": row.next_try_at, "claim": row.claim}
    mine = type(row)._default_manager.filter(status=Status.PENDING.value, **as_read)
    return claim if mine.update(**columns_of(state), **ended, **fresh, claim=claim) else None


def put_back(held: QuerySet[Any], *, now: datetime, **progress: object) -> None:
    """Let another worker begin the row that is held, if there is one, as if this one had not; with this progress."""
    row = held.first()
    if row is not None:
        held.update(attempts=max(0, row.attempts - 1), next_try_at=now, claim=None, **progress)


def broke_off(held: QuerySet[Any], *, reason: str, now: datetime) -> None:
    """Note that an attempt ended without an answer; it is made again at once, a few times."""
    row = held.first()
    if row is not None:
        held.update(**columns_of(attempts.broke_off(state_of(row), reason, now)), claim=None)


def write_end(row: Tuning | Build | Trial, state: AttemptState, now: datetime) -> None:
    """Write how a row ended, with what else was set of it."""
    for name, value in columns_of(state).items():
        setattr(row, name, value)
    row.claim, row.finished_at = None, now
    row.save()
