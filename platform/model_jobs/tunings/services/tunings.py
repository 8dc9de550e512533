"""Tuning jobs: order, claim, renewal with progress, end, application. None of these writes waits for a model.

Claims are those of replays (`recordings.services.replays`).
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from accounts.services import audit_record
from clusters.services.cluster_selection import cluster_default
from common.errors import Conflict
from deployments.domain.service_file import content_of, is_code
from deployments.domain.service_file.rewrite import file_saying
from deployments.services.egress import service_egress
from deployments.services.revision_change import check_ready
from deployments.services.services import runs_with, service_named, spec_of
from integrations.clusters.base import Job, JobKind, Resources
from jobs.domain import attempts
from jobs.domain.attempts import STOPPED, AttemptState, Status
from jobs.services.claim import begin, broke_off, due, put_back, state_of, write_end
from model_jobs.models import Tuning
from model_jobs.tunings.domain.order import SPARE_S, TuningOrder, config_with
from model_jobs.tunings.selectors import tuning_get
from registry.domain.lineage import origin_of
from registry.models import ModelVersion
from registry.selectors import model_version_get


@dataclass(frozen=True, slots=True)
class TuningClaim:
    """Claim to run one tuning and to write its end."""

    id: uuid.UUID
    tuning_id: int
    cluster_id: int
    job: Job


@transaction.atomic
def tuning_start(
    *,
    model: str,
    number: int,
    service: tuple[str, str] | None,
    order: TuningOrder,
    actor: str,
    now: datetime,
) -> Tuning:
    """Order a search for the best configuration of a version.

    Args:
        service: namespace and name of the one whose replicas it is for; None for the default cluster.

    Raises:
        NotFound: no such version or service.
        Conflict: the version is not READY.
    """
    version = model_version_get(model=model, number=number)
    check_ready(version)
    of = None if service is None else service_named(*service)
    row = Tuning.objects.create(
        model_version=version,
        cluster=cluster_default(now=now) if of is None else of.cluster,
        service=of,
        order=order.as_json(),
        model_config={} if of is None else dict(spec_of(of).model_config),
        next_try_at=now,
        created_at=now,
        created_by=actor,
    )
    after = {"order": row.order, "service": None if of is None else f"{of.namespace}/{of.name}"}
    audit_record(actor=actor, action="tuning.start", target=_target(row), now=now, after=after)
    return row


@transaction.atomic
def tuning_stop(*, model: str, number: int, tuning_id: int, actor: str, now: datetime) -> None:
    """Stop a tuning, which then is FAILED; raises NotFound, and Conflict once it is over."""
    found = tuning_get(model=model, number=number, tuning_id=tuning_id)
    row = Tuning.objects.select_for_update().get(pk=found.pk)
    if row.status != Status.PENDING:
        raise Conflict(f"{row} is {row.status} already")
    write_end(row, attempts.failed(state_of(row), STOPPED), now)
    audit_record(actor=actor, action="tuning.stop", target=_target(found), now=now)


def tuning_begin(*, tuning_id: int, now: datetime, lease: timedelta) -> TuningClaim | None:
    """Claim the tuning; None where it is not due, or its cluster runs another one.

    One without attempts left has FAILED then.
    """
    row = Tuning.objects.select_related("service__cluster", "model_version").filter(pk=tuning_id).first()
    if row is None or not attempts.may_begin(state_of(row), now):
        return None
    pending = Tuning.objects.filter(status=Status.PENDING.value)
    if pending.filter(cluster=row.cluster_id, next_try_at__gt=now).exclude(claim=None).exists():
        return None  # two concurrent ones would distort each other's measurements
    claim_id = begin(row, now=now, lease=lease, progress={})
    if claim_id is None:
        return None
    return TuningClaim(claim_id, row.pk, row.cluster_id, _job(row))


def tunings_due(*, now: datetime, limit: int) -> list[int]:
    """Return the due tunings, oldest first."""
    return due(Tuning.objects.all(), now=now, limit=limit)


def tuning_renew(*, claim: TuningClaim, progress: Mapping[str, Any], now: datetime, lease: timedelta) -> bool:
    """Write the progress and renew the claim for another `lease`; False where it was lost and the work should stop."""
    return bool(_held(claim).update(progress=progress, next_try_at=now + lease))


def tuning_put_back(*, claim: TuningClaim, now: datetime) -> None:
    """Release the tuning, so that another worker restarts it, as if this attempt had not begun."""
    put_back(_held(claim), now=now, progress={})


def tuning_broke_off(*, claim: TuningClaim, reason: str, now: datetime) -> None:
    """Record an attempt that ended without a result; it is retried at once, a few times."""
    broke_off(_held(claim), reason=reason, now=now)


def tuning_fail(*, claim: TuningClaim, reason: str, now: datetime) -> None:
    """Record that the model cannot be tuned."""
    _end(claim, lambda state: attempts.failed(state, reason), {}, now)


def tuning_end(*, claim: TuningClaim, report: Mapping[str, Any], now: datetime) -> bool:
    """Write the result of the search; False where the claim was lost meanwhile."""
    return _end(claim, attempts.done, report, now)


def tuned_file(*, row: Tuning, service: tuple[str, str]) -> dict[str, Any]:
    """Return the service's file with the chosen configuration; applied, it makes a new revision.

    Raises:
        NotFound: no such service.
        Conflict: no setting was chosen, or the service serves another version, or its configuration has changed since.
    """
    if not row.report.get("chosen"):
        raise Conflict(f"{row} is {row.status} and has chosen no configuration")
    of = service_named(*service)
    if of.model_version_id != row.model_version_id:
        raise Conflict(f"service {of} does not serve {row.model_version}, which {row} is of; tune what it serves")
    spec = spec_of(of)
    if dict(spec.model_config) != row.model_config:
        raise Conflict(f"the configuration of service {of} is not the one that {row} began with; tune it again")
    content = replace(content_of(spec), model_config=config_with(spec.model_config, row.report))
    return file_saying(of.document, spec, content)


def _job(row: Tuning) -> Job:
    order, version = TuningOrder.from_json(row.order), row.model_version
    spec = None if row.service is None else spec_of(row.service)
    return Job(
        kind=JobKind.TUNE,
        artifact_uri=version.artifact_uri,
        timeout_s=order.budget_s + SPARE_S,
        artifact_digest=version.digest,
        artifact_origin=origin_of(version.lineage),
        arguments=order.arguments,
        model_config=row.model_config,
        env={} if spec is None else spec.env,
        is_code=is_code(version.platform),
        egress=row.service is not None and spec is not None and service_egress(row.service, spec),
        resources=Resources() if row.service is None else runs_with(row.service),
    )


def _held(claim: TuningClaim) -> QuerySet[Tuning]:
    return Tuning.objects.filter(pk=claim.tuning_id, status=Status.PENDING.value, claim=claim.id)


@transaction.atomic
def _end(
    claim: TuningClaim, move: Callable[[AttemptState], AttemptState], report: Mapping[str, Any], now: datetime
) -> bool:
    row = _held(claim).select_for_update(of=("self",)).first()
    if row is None:
        return False
    row.report = {key: value for key, value in report.items() if key != "plot"}
    row.plot = report.get("plot", "")
    write_end(row, move(state_of(row)), now)
    return True


def _target(row: Tuning) -> str:
    version: ModelVersion = row.model_version
    return f"models/{version.model.name}/versions/{version.number}/tunings/{row.pk}"
