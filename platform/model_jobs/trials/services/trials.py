"""Trial jobs: order, claim, renewal with progress, end, deletion. None of these writes waits for a model.

Claims are those of replays (`recordings.services.replays`). A claim's id is also the name under which a pod fetches the
request, so that one whose attempt lost its claim gets nothing.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from accounts.services import audit_record
from clusters.services.cluster_selection import cluster_default
from common.errors import Conflict
from deployments.services.revision_change import check_ready
from integrations.clusters.base import Job, JobKind
from jobs.domain import attempts
from jobs.domain.attempts import AttemptState, Status
from jobs.services.claim import begin, broke_off, due, put_back, state_of, write_end
from model_jobs.models import Trial
from model_jobs.trials.domain.order import ARGUMENTS, Tried, request_text
from model_jobs.trials.selectors import trial_get
from registry.domain.lineage import origin_of
from registry.models import ModelVersion
from registry.selectors import model_version_get
from registry.services.version_checks import resources_of

STOPPED = "somebody stopped it"
KEPT = timedelta(days=1)
MOST_AT_A_TIME = 2
"""Concurrent trials on a cluster; each runs a model and takes one of the worker's threads."""
_MOST_WAITING, _MOST_KEPT = 10, 20


@dataclass(frozen=True, slots=True)
class TrialClaim:
    """Claim to run one trial and to write its end."""

    id: uuid.UUID
    trial_id: int
    cluster_id: int
    model: str
    number: int
    job: Job


@transaction.atomic
def trial_start(*, model: str, number: int, request: Mapping[str, Any], actor: str, now: datetime) -> Trial:
    """Order a trial of a request with a version, on the default cluster; the newest of each version are kept.

    Raises:
        NotFound: no such version.
        Conflict: the version is not READY, or the limit of waiting trials is reached.
        InvalidInput: the request is invalid, or too large.
    """
    text = request_text(request)
    version = model_version_get(model=model, number=number)
    check_ready(version)
    others = Trial.objects.filter(model_version=version)
    if others.filter(status=Status.PENDING.value).count() >= _MOST_WAITING:
        raise Conflict(f"{_MOST_WAITING} trials of {version} wait already; stop one, or wait for their end")
    ended = others.exclude(status=Status.PENDING.value).order_by("-pk").values_list("pk", flat=True)
    Trial.objects.filter(pk__in=list(ended[_MOST_KEPT - 1 :])).delete()
    row = Trial.objects.create(
        model_version=version,
        cluster=cluster_default(now=now),
        request=text,
        next_try_at=now,
        created_at=now,
        created_by=actor,
    )
    after = {"request_bytes": len(text.encode())}
    audit_record(actor=actor, action="trial.start", target=_target(row), now=now, after=after)
    return row


@transaction.atomic
def trial_stop(*, model: str, number: int, trial_id: int, actor: str, now: datetime) -> None:
    """Stop a trial, which then is FAILED; raises NotFound, and Conflict once it is over."""
    found = trial_get(model=model, number=number, trial_id=trial_id)
    row = Trial.objects.select_for_update().get(pk=found.pk)
    if row.status != Status.PENDING:
        raise Conflict(f"{row} is {row.status} already")
    write_end(row, attempts.failed(state_of(row), STOPPED), now)
    audit_record(actor=actor, action="trial.stop", target=_target(found), now=now)


def trial_begin(*, trial_id: int, now: datetime, lease: timedelta) -> TrialClaim | None:
    """Claim the trial; None where it is not due, or its cluster's limit of concurrent trials is reached.

    One without attempts left has FAILED then.
    """
    row = Trial.objects.select_related("model_version__model").filter(pk=trial_id).first()
    if row is None or not attempts.may_begin(state_of(row), now):
        return None
    pending = Trial.objects.filter(status=Status.PENDING.value)
    running = pending.filter(cluster=row.cluster_id, next_try_at__gt=now).exclude(claim=None)
    if running.count() >= MOST_AT_A_TIME:
        return None
    claim_id = begin(row, now=now, lease=lease, stage="")
    if claim_id is None:
        return None
    version = row.model_version
    return TrialClaim(claim_id, row.pk, row.cluster_id, version.model.name, version.number, _job(row, claim_id))


def trials_due(*, now: datetime, limit: int) -> list[int]:
    """Return the due trials, oldest first."""
    return due(Trial.objects.all(), now=now, limit=limit)


def trial_renew(*, claim: TrialClaim, stage: str, now: datetime, lease: timedelta) -> bool:
    """Write the stage and renew the claim for another `lease`; False where it was lost and the work should stop."""
    return bool(_held(claim).update(stage=stage, next_try_at=now + lease))


def trial_put_back(*, claim: TrialClaim, now: datetime) -> None:
    """Release the trial, so that another worker restarts it, as if this attempt had not begun."""
    put_back(_held(claim), now=now, stage="")


def trial_broke_off(*, claim: TrialClaim, reason: str, now: datetime) -> None:
    """Record an attempt that ended without a result; it is retried at once, a few times."""
    broke_off(_held(claim), reason=reason, now=now)


def trial_fail(*, claim: TrialClaim, reason: str, now: datetime) -> None:
    """Record that the model cannot be run."""
    _end(claim, lambda state: attempts.failed(state, reason), None, now)


def trial_end(*, claim: TrialClaim, tried: Tried, now: datetime) -> bool:
    """Write the result of the request; False where the claim was lost meanwhile."""
    return _end(claim, attempts.done, tried, now)


def trials_forget(*, now: datetime) -> int:
    """Delete the trials past their retention, with their requests, and return their number."""
    return Trial.objects.filter(created_at__lt=now - KEPT).delete()[0]


def _job(row: Trial, claim_id: uuid.UUID) -> Job:
    version = row.model_version
    return Job(
        kind=JobKind.TRY,
        artifact_uri=version.artifact_uri,
        timeout_s=float(settings.MODEL_CHECK_TIMEOUT_S),
        artifact_digest=version.digest,
        artifact_origin=origin_of(version.lineage),
        arguments=ARGUMENTS,
        request=row.request.encode(),
        request_id=str(claim_id),
        resources=resources_of(version.lineage),
    )


def _held(claim: TrialClaim) -> QuerySet[Trial]:
    return Trial.objects.filter(pk=claim.trial_id, status=Status.PENDING.value, claim=claim.id)


@transaction.atomic
def _end(claim: TrialClaim, move: Callable[[AttemptState], AttemptState], tried: Tried | None, now: datetime) -> bool:
    row = _held(claim).select_for_update(of=("self",)).first()
    if row is None:
        return False
    if tried is not None:
        row.answer, row.report = tried.answer, tried.report
    write_end(row, move(state_of(row)), now)
    return True


def _target(row: Trial) -> str:
    version: ModelVersion = row.model_version
    return f"models/{version.model.name}/versions/{version.number}/trials/{row.pk}"
