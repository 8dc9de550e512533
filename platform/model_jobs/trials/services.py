"""Trial jobs: order, stop, and the kind: its job, and the response.

A claim's id is also the name under which a pod fetches the request, so that one whose attempt lost its claim gets
nothing.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts.services import audit_record
from clusters.services.cluster_selection import cluster_default, jobs_at_once
from common.errors import Conflict
from deployments.services.revisions.revision_change import check_ready
from integrations.clusters import base
from integrations.clusters.base import Job, JobResult
from jobs.domain.attempts import Status
from jobs.services import claim as claims
from jobs.services.kinds import JobKind
from jobs.services.run_claim import as_job
from model_jobs.models import Trial
from model_jobs.trials.domain.order import ARGUMENTS, STARTING, Tried, read_report, request_text, stage_in
from model_jobs.trials.selectors import trial_get
from registry.domain.lineage import origin_of
from registry.models import ModelVersion
from registry.selectors import model_version_get
from registry.services.images import check_has_files
from registry.services.version_checks import resources_of

KEPT = timedelta(days=1)
_MOST_WAITING, _MOST_KEPT = 10, 20


@transaction.atomic
def trial_start(*, model: str, number: int, request: Mapping[str, Any], actor: str, now: datetime) -> Trial:
    """Order a trial of a request with a version, on the default cluster; the newest of each version are kept.

    Raises:
        NotFound: no such version.
        Conflict: the version is not READY or is an image, or the limit of waiting trials is reached.
        InvalidInput: the request is invalid, or too large.
    """
    text = request_text(request)
    version = model_version_get(model=model, number=number)
    check_ready(version)
    check_has_files(version)
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
    claims.stop(TRIAL, found, now=now)
    audit_record(actor=actor, action="trial.stop", target=_target(found), now=now)


def _job(row: Trial, claim_id: UUID) -> Job:
    version = row.model_version
    return Job(
        kind=base.JobKind.TRY,
        artifact_uri=version.artifact_uri,
        timeout_s=float(settings.MODEL_CHECK_TIMEOUT_S),
        artifact_digest=version.digest,
        artifact_origin=origin_of(version.lineage),
        arguments=ARGUMENTS,
        request=row.request.encode(),
        request_id=str(claim_id),
        resources=resources_of(version.lineage),
    )


def _target(row: Trial) -> str:
    version: ModelVersion = row.model_version
    return f"models/{version.model.name}/versions/{version.number}/trials/{row.pk}"


def _progress(line: str) -> dict[str, Any] | None:
    stage = stage_in(line)
    return {"stage": stage} if stage else None


def _report(result: JobResult, row: Trial) -> Tried:
    version = row.model_version
    return read_report(result, model=version.model.name, number=version.number)


def _write(row: Trial, tried: Tried, _now: datetime) -> None:
    row.answer, row.report = tried.answer, tried.report


TRIAL = JobKind(
    noun="trial",
    model=Trial,
    order=_job,
    work=as_job(progress=_progress, report=_report, begun={"stage": STARTING}),
    write=_write,
    progress={"stage": ""},
    most=lambda row: jobs_at_once(row.cluster),
    request=lambda row: row.request,
    related=("model_version__model", "cluster"),
    kept=KEPT,
)
