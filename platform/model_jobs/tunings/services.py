"""Tuning jobs: order, stop, application, and the kind: its job, and what was measured and chosen."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from accounts.services import audit_record
from clusters.services.cluster_selection import cluster_default
from common.errors import Conflict
from deployments.domain.service_file import content_of, is_code
from deployments.domain.service_file.rewrite import file_saying
from deployments.services.revisions.egress import service_egress
from deployments.services.revisions.revision_change import check_ready
from deployments.services.revisions.secret_env import env_of_job, why_no_env
from deployments.services.services import runs_with, service_named, spec_of
from integrations.clusters import base
from integrations.clusters.base import Job, Resources
from jobs.services import claim as claims
from jobs.services.kinds import JobKind
from jobs.services.run_claim import as_job
from model_jobs.models import Tuning
from model_jobs.tunings.domain.order import SPARE_S, TuningOrder, config_with, progress_in, read_report
from model_jobs.tunings.selectors import tuning_get
from registry.domain.lineage import origin_of
from registry.models import ModelVersion
from registry.selectors import model_version_get
from registry.services.images import check_has_files


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
        Conflict: the version is not READY, or is an image.
    """
    version = model_version_get(model=model, number=number)
    check_ready(version)
    check_has_files(version)
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
    claims.stop(TUNING, found, now=now)
    audit_record(actor=actor, action="tuning.stop", target=_target(found), now=now)


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


def _job(row: Tuning, _claim_id: UUID) -> Job:
    order, version = TuningOrder.from_json(row.order), row.model_version
    spec = None if row.service is None else spec_of(row.service)
    return Job(
        kind=base.JobKind.TUNE,
        artifact_uri=version.artifact_uri,
        timeout_s=order.budget_s + SPARE_S,
        artifact_digest=version.digest,
        artifact_origin=origin_of(version.lineage),
        arguments=order.arguments,
        model_config=row.model_config,
        env={} if row.service is None or spec is None else env_of_job(row.service, spec),
        is_code=is_code(version.platform),
        egress=row.service is not None and spec is not None and service_egress(row.service, spec),
        resources=Resources() if row.service is None else runs_with(row.service),
    )


def _impossible(row: Tuning) -> str:
    return "" if row.service is None else why_no_env(row.service, spec_of(row.service))


def _target(row: Tuning) -> str:
    version: ModelVersion = row.model_version
    return f"models/{version.model.name}/versions/{version.number}/tunings/{row.pk}"


def _progress(line: str) -> dict[str, Any] | None:
    found = progress_in(line)
    return None if found is None else {"progress": found}


def _write(row: Tuning, report: Mapping[str, Any], _now: datetime) -> None:
    row.report = {key: value for key, value in report.items() if key != "plot"}
    row.plot = report.get("plot", "")


TUNING = JobKind(
    noun="tuning",
    model=Tuning,
    order=_job,
    work=as_job(progress=_progress, report=lambda result, _row: read_report(result)),
    write=_write,
    impossible=_impossible,
    progress={"progress": {}},
    related=("model_version__model", "service__cluster"),
)
"""One at a time on a cluster: two concurrent ones would distort each other's measurements."""
