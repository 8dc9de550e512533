"""Job claims: leased rows of any kind (`jobs.services.kinds`), whose states are those of `jobs.domain.attempts`.

An attempt is claimed by a conditional UPDATE that names the values read, so of two workers exactly one gets it. The
claim's id fences all later writes of its worker. None of these writes waits for the work.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from common.errors import Conflict, FairleadError
from common.randomness import new_id
from jobs.domain import attempts
from jobs.domain.attempts import STOPPED, AttemptState, Status
from jobs.models import ClaimedJob
from jobs.services.kinds import JobClaim, JobKind, Order, Report, Row, kinds

AnyKind = JobKind[Any, Any, Any]
AnyClaim = JobClaim[Any, Any]
_LOOKED_AT = 200


def due(kind: AnyKind, *, now: datetime, limit: int) -> list[int]:
    """Return the ids of due jobs, oldest first; of those that share a limit not more than may run at a time."""
    waiting = kind.rows.filter(status=Status.PENDING.value, next_try_at__lte=now).order_by("next_try_at", "pk")
    ids: list[int] = []
    taken: Counter[Q] = Counter()
    for row in waiting[:_LOOKED_AT]:
        beside = kind.beside(row)
        if taken[beside] < kind.most(row) and len(ids) < limit:
            taken[beside] += 1
            ids.append(row.pk)
    return ids


def begin(
    kind: JobKind[Row, Order, Report], row_id: int, *, now: datetime, lease: timedelta
) -> JobClaim[Row, Order] | None:
    """Claim the job; None where it is not due, too many run already, or another worker was first.

    One that is impossible, or without attempts left, has FAILED then.
    """
    row = kind.rows.filter(pk=row_id).first()
    if row is None or not attempts.may_begin(_state_of(row), now):
        return None
    running = kind.pending.filter(kind.beside(row), next_try_at__gt=now).exclude(claim=None)
    if running.count() >= kind.most(row):
        return None
    reason = kind.impossible(row)
    state = (
        attempts.failed(_state_of(row), reason) if reason else attempts.begin(_state_of(row), now, lease, kind.retries)
    )
    begun = state.status is Status.PENDING
    claim_id, ended = new_id(), {} if begun else {"finished_at": now}
    as_read = {"pk": row.pk, "attempts": row.attempts, "next_try_at": row.next_try_at, "claim": row.claim}
    columns = {**_columns_of(kind, state), **kind.progress, **kind.fresh, **ended, "claim": claim_id if begun else None}
    with transaction.atomic():
        if not kind.pending.filter(**as_read).update(**columns):
            return None
        if not begun:
            kind.ended(row, state, now)
            return None
    return JobClaim(claim_id, row, kind.order(row, claim_id), kind.cluster_of(row))


def renew(kind: AnyKind, claim: AnyClaim, *, progress: Mapping[str, object], now: datetime, lease: timedelta) -> bool:
    """Write the progress and renew the claim for another `lease`; False where it was lost and the work should stop."""
    return bool(kind.held(claim.id).update(**progress, next_try_at=now + lease))


def put_back(kind: AnyKind, claim: AnyClaim, *, now: datetime) -> None:
    """Release the job, so that another worker restarts it, as if this attempt had not begun."""
    row = kind.held(claim.id).first()
    if row is not None:
        fewer = max(0, row.attempts - 1)
        kind.held(claim.id).update(attempts=fewer, next_try_at=now, claim=None, **kind.progress)


@transaction.atomic
def broke_off(kind: AnyKind, claim: AnyClaim, *, reason: str, now: datetime) -> None:
    """Record an attempt that ended without a result; it is retried a few times."""
    row = _locked(kind, claim)
    if row is None:
        return
    state = attempts.broke_off(_state_of(row), reason, now, kind.retries)
    if state.status is Status.FAILED:
        _write_end(kind, row, state, now)
        kind.ended(row, state, now)
    else:
        kind.held(claim.id).update(**_columns_of(kind, state), claim=None)


def fail(kind: AnyKind, claim: AnyClaim, *, reason: str, now: datetime) -> None:
    """Record that the job is impossible."""
    _end(kind, claim, lambda state: attempts.failed(state, reason), now)


def end(kind: JobKind[Row, Order, Report], claim: JobClaim[Row, Order], report: Report, *, now: datetime) -> Row | None:
    """Write the result of the job, and return its row; None where the claim was lost meanwhile.

    The job has FAILED where its result is refused, and then this returns None.
    """
    try:
        return _end(kind, claim, attempts.done, now, lambda row: kind.write(row, report, now))
    except FairleadError as error:
        fail(kind, claim, reason=error.message, now=now)
        return None


@transaction.atomic
def stop(kind: AnyKind, found: ClaimedJob, *, now: datetime, reason: str = STOPPED) -> None:
    """Stop a job, which then is FAILED; its worker notices at its next renewal. Raises Conflict once it is over."""
    row = kind.model._default_manager.select_for_update().get(pk=found.pk)
    if row.status != Status.PENDING:
        raise Conflict(f"{row} is {row.status} already")
    _write_end(kind, row, attempts.failed(_state_of(row), reason), now)


def jobs_forget(*, now: datetime) -> int:
    """Delete the jobs past the retention of their kind, with their requests, and return their number."""
    limited = [(kind, kind.kept) for kind in kinds() if kind.kept is not None]
    return sum(kind.model._default_manager.filter(created_at__lt=now - kept).delete()[0] for kind, kept in limited)


@transaction.atomic
def _end(
    kind: JobKind[Row, Order, Report],
    claim: JobClaim[Row, Order],
    move: Callable[[AttemptState], AttemptState],
    now: datetime,
    write: Callable[[Row], None] | None = None,
) -> Row | None:
    row = _locked(kind, claim)
    if row is None:
        return None
    if write is not None:
        write(row)
    state = move(_state_of(row))
    _write_end(kind, row, state, now)
    kind.ended(row, state, now)
    return row


def _locked(kind: JobKind[Row, Order, Report], claim: JobClaim[Row, Order]) -> Row | None:
    held = kind.held(claim.id).select_for_update(of=("self",))
    return (held.select_related(*kind.related) if kind.related else held).first()


def _write_end(kind: AnyKind, row: ClaimedJob, state: AttemptState, now: datetime) -> None:
    for name, value in _columns_of(kind, state).items():
        setattr(row, name, value)
    row.claim, row.finished_at = None, now
    row.save()


def _state_of(row: ClaimedJob) -> AttemptState:
    status = Status(row.status) if row.status in set(Status) else Status.DONE
    return AttemptState(status, row.attempts, row.reason, row.next_try_at)


def _columns_of(kind: AnyKind, state: AttemptState) -> dict[str, object]:
    return {
        "status": kind.done if state.status is Status.DONE else state.status.value,
        "attempts": state.attempts,
        "reason": state.reason,
        "next_try_at": state.next_try_at,
    }
