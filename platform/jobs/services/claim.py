"""Job claims: leased rows of replays, tunings, builds and trials (`jobs.domain.attempts`)."""

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
    """Return a row as a claim."""
    return AttemptState(Status(row.status), row.attempts, row.reason, row.next_try_at)


def columns_of(state: AttemptState) -> dict[str, object]:
    """Return a row's job state."""
    return {
        "status": state.status.value,
        "attempts": state.attempts,
        "reason": state.reason,
        "next_try_at": state.next_try_at,
    }


def due(rows: QuerySet[Any], *, now: datetime, limit: int) -> list[int]:
    """Return the ids of due rows, oldest first."""
    waiting = rows.filter(status=Status.PENDING.value, next_try_at__lte=now)
    return list(waiting.order_by("next_try_at", "pk").values_list("pk", flat=True)[:limit])


def begin(row: Tuning | Build | Trial, *, now: datetime, lease: timedelta, **fresh: object) -> uuid.UUID | None:
    """Claim a row as it was read, and set these columns; None where another worker was first.

    A row without attempts left becomes FAILED, without a claim.
    """
    state = attempts.begin(state_of(row), now, lease)
    begun = state.status is Status.PENDING
    claim = uuid.uuid4() if begun else None
    ended = {} if begun else {"finished_at": now}
    as_read = {"pk": row.pk, "attempts": row.attempts, "next_try_at": row.next_try_at, "claim": row.claim}
    mine = type(row)._default_manager.filter(status=Status.PENDING.value, **as_read)
    return claim if mine.update(**columns_of(state), **ended, **fresh, claim=claim) else None


def put_back(held: QuerySet[Any], *, now: datetime, **progress: object) -> None:
    """Release a held row, if any, so that another worker begins it as if this attempt had not; with this progress."""
    row = held.first()
    if row is not None:
        held.update(attempts=max(0, row.attempts - 1), next_try_at=now, claim=None, **progress)


def broke_off(held: QuerySet[Any], *, reason: str, now: datetime) -> None:
    """Record an attempt that ended without a result; it is retried at once, a few times."""
    row = held.first()
    if row is not None:
        held.update(**columns_of(attempts.broke_off(state_of(row), reason, now)), claim=None)


def write_end(row: Tuning | Build | Trial, state: AttemptState, now: datetime) -> None:
    """Write the end of a row, with further columns."""
    for name, value in columns_of(state).items():
        setattr(row, name, value)
    row.claim, row.finished_at = None, now
    row.save()
