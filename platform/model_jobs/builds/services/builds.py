"""Build jobs: order, claim, renewal with progress, failure. None of these writes waits for a model.

Claims are those of replays (`recordings.services.replays`). A claim's id is also the name under which the files are
uploaded, so that those of an attempt that lost its claim are refused.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from accounts.services import audit_record
from clusters.services.cluster_selection import cluster_default
from common.errors import Conflict
from deployments.services.revision_change import check_ready
from deployments.services.services import runs_with, service_named
from integrations.clusters.base import Job, JobKind
from jobs.domain import attempts
from jobs.domain.attempts import STOPPED, AttemptState, Status
from jobs.services.claim import begin, broke_off, due, put_back, state_of, write_end
from model_jobs.builds.domain.order import BuildOrder
from model_jobs.builds.selectors import build_get
from model_jobs.models import Build
from registry.domain.lineage import origin_of
from registry.models import ModelVersion
from registry.selectors import model_version_get


@dataclass(frozen=True, slots=True)
class BuildClaim:
    """Claim to run one build and to write its end."""

    id: uuid.UUID
    build_id: int
    cluster_id: int
    job: Job


@transaction.atomic
def build_start(
    *, model: str, number: int, service: tuple[str, str] | None, order: BuildOrder, actor: str, now: datetime
) -> Build:
    """Order a build of a version, on the default cluster, where the new version is checked too.

    Args:
        service: namespace and name of the one whose GPU or slice it is for; None for the order's own.

    Raises:
        NotFound: no such version or service.
        Conflict: the version is not READY, or the service runs on another cluster, or on no GPU.
        InvalidInput: it cannot be built so.
    """
    version = model_version_get(model=model, number=number)
    check_ready(version)
    cluster = cluster_default(now=now)
    if service is not None:
        of = service_named(*service)
        resources = runs_with(of)
        if of.cluster_id != cluster.pk:
            raise Conflict(f"service {of} runs on {of.cluster.name}, and versions are built on {cluster.name}")
        if not resources.accelerator:
            raise Conflict(f"service {of} runs on no GPU; give the accelerator that the model is to be built on")
        order = replace(order, accelerator=resources.accelerator, products=resources.products)
    order.check()
    row = Build.objects.create(
        model_version=version,
        cluster=cluster,
        order=order.as_json(),
        next_try_at=now,
        created_at=now,
        created_by=actor,
    )
    audit_record(actor=actor, action="build.start", target=_target(row), now=now, after=row.order)
    return row


@transaction.atomic
def build_stop(*, model: str, number: int, build_id: int, actor: str, now: datetime) -> None:
    """Stop a build, which then is FAILED; raises NotFound, and Conflict once it is over."""
    found = build_get(model=model, number=number, build_id=build_id)
    row = Build.objects.select_for_update().get(pk=found.pk)
    if row.status != Status.PENDING:
        raise Conflict(f"{row} is {row.status} already")
    write_end(row, attempts.failed(state_of(row), STOPPED), now)
    audit_record(actor=actor, action="build.stop", target=_target(found), now=now)


def build_begin(*, build_id: int, now: datetime, lease: timedelta) -> BuildClaim | None:
    """Claim the build; None where it is not due, or its cluster runs another one.

    One without attempts left has FAILED then.
    """
    row = Build.objects.select_related("model_version").filter(pk=build_id).first()
    if row is None or not attempts.may_begin(state_of(row), now):
        return None
    pending = Build.objects.filter(status=Status.PENDING.value)
    if pending.filter(cluster=row.cluster_id, next_try_at__gt=now).exclude(claim=None).exists():
        return None  # a plan's kernels are measured while it is built
    claim_id = begin(row, now=now, lease=lease, progress={}, digest="", size_bytes=0)
    if claim_id is None:
        return None
    return BuildClaim(claim_id, row.pk, row.cluster_id, _job(row, claim_id))


def builds_due(*, now: datetime, limit: int) -> list[int]:
    """Return the due builds, oldest first."""
    return due(Build.objects.all(), now=now, limit=limit)


def build_renew(*, claim: BuildClaim, progress: Mapping[str, Any], now: datetime, lease: timedelta) -> bool:
    """Write the progress and renew the claim for another `lease`; False where it was lost and the work should stop."""
    return bool(held(claim.id).update(progress=progress, next_try_at=now + lease))


def build_put_back(*, claim: BuildClaim, now: datetime) -> None:
    """Release the build, so that another worker restarts it, as if this attempt had not begun."""
    put_back(held(claim.id), now=now, progress={})


def build_broke_off(*, claim: BuildClaim, reason: str, now: datetime) -> None:
    """Record an attempt that ended without a result; it is retried at once, a few times."""
    broke_off(held(claim.id), reason=reason, now=now)


def build_fail(*, claim: BuildClaim, reason: str, now: datetime) -> None:
    """Record that the model cannot be built so."""
    _end(claim, lambda state: attempts.failed(state, reason), now)


def _job(row: Build, claim_id: uuid.UUID) -> Job:
    order, version = BuildOrder.from_json(row.order), row.model_version
    return Job(
        kind=JobKind.BUILD,
        artifact_uri=version.artifact_uri,
        timeout_s=order.timeout_s,
        artifact_digest=version.digest,
        artifact_origin=origin_of(version.lineage),
        arguments=order.arguments,
        result_id=str(claim_id),
        largest_file_bytes=settings.MAX_ARTIFACT_BYTES,
        resources=order.resources,
    )


def held(claim_id: uuid.UUID) -> QuerySet[Build]:
    """Return the build with a claim of that id, if any."""
    return Build.objects.filter(status=Status.PENDING.value, claim=claim_id)


@transaction.atomic
def _end(claim: BuildClaim, move: Callable[[AttemptState], AttemptState], now: datetime) -> None:
    row = held(claim.id).select_for_update(of=("self",)).first()
    if row is not None:
        write_end(row, move(state_of(row)), now)


def _target(row: Build) -> str:
    version: ModelVersion = row.model_version
    return f"models/{version.model.name}/versions/{version.number}/builds/{row.pk}"
