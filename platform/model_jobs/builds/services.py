"""Build jobs: order, stop, and the kind: its job, and the version that the files become.

A claim's id is also the name under which the files are uploaded, so that those of an attempt that lost its claim are
refused.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts.services import audit_record
from clusters.services.cluster_selection import cluster_default
from common.errors import Conflict
from deployments.services.revisions.revision_change import check_ready
from deployments.services.services import runs_with, service_named
from integrations.artifacts.store import StoredArtifact
from integrations.clusters import base
from integrations.clusters.base import Job
from jobs.services import claim as claims
from jobs.services.kinds import JobClaim, JobKind
from jobs.services.pods import result_take
from jobs.services.run_claim import as_job
from model_jobs.builds.domain.order import BuildOrder, progress_in, read_report
from model_jobs.builds.selectors import build_get
from model_jobs.models import Build
from registry.domain.lineage import Lineage, origin_of
from registry.domain.version_metadata import Particulars
from registry.models import ModelVersion
from registry.selectors import model_version_get
from registry.services import version_register
from registry.services.images import check_has_files
from registry.storage import store, store_folder


@transaction.atomic
def build_start(
    *, model: str, number: int, service: tuple[str, str] | None, order: BuildOrder, actor: str, now: datetime
) -> Build:
    """Order a build of a version, on the default cluster, where the new version is checked too.

    Args:
        service: namespace and name of the one whose GPU or slice it is for; None for the order's own.

    Raises:
        NotFound: no such version or service.
        Conflict: the version is not READY or is an image, or the service runs on another cluster, or on no GPU.
        InvalidInput: it cannot be built so.
    """
    version = model_version_get(model=model, number=number)
    check_ready(version)
    check_has_files(version)
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
    claims.stop(BUILD, found, now=now)
    audit_record(actor=actor, action="build.stop", target=_target(found), now=now)


def _job(row: Build, claim_id: UUID) -> Job:
    order, version = BuildOrder.from_json(row.order), row.model_version
    return Job(
        kind=base.JobKind.BUILD,
        artifact_uri=version.artifact_uri,
        timeout_s=order.timeout_s,
        artifact_digest=version.digest,
        artifact_origin=origin_of(version.lineage),
        arguments=order.arguments,
        result_id=str(claim_id),
        largest_file_bytes=settings.MAX_ARTIFACT_BYTES,
        resources=order.resources,
    )


def _target(row: Build) -> str:
    version: ModelVersion = row.model_version
    return f"models/{version.model.name}/versions/{version.number}/builds/{row.pk}"


def _progress(line: str) -> dict[str, Any] | None:
    found = progress_in(line)
    return None if found is None else {"progress": found}


def _store(claim: JobClaim[Build, Job], folder: Path) -> None:
    """Store the files that a build made on this machine, as its pod would bring them elsewhere."""
    result_take(result_id=claim.id, artifact=store_folder(folder, owner=f"build-{claim.row.pk}"))


def _files(artifact: StoredArtifact) -> dict[str, object]:
    return {"digest": artifact.digest, "size_bytes": artifact.size_bytes}


def _write(row: Build, report: Mapping[str, Any], now: datetime) -> None:
    """Register the uploaded files as a version; raises where they are missing, or refused as a push would be."""
    if row.digest != report["digest"]:
        raise Conflict(f"what came back is {row.digest or 'nothing'}, and what was built {report['digest']}")
    row.version, _ = version_register(
        model=row.model_version.model.name,
        artifact=StoredArtifact(row.digest, store().path_of(row.digest).as_uri(), row.size_bytes, {}),
        source_name=row.model_version.source_name,
        now=now,
        actor=row.created_by,
        particulars=Particulars(lineage=_lineage(row, report["made"])),
    )
    row.report = {"made": report["made"]}


def _lineage(row: Build, made: Mapping[str, str]) -> Lineage:
    """Return the source version's lineage, with this build added."""
    source = {**Lineage().as_json(), **row.model_version.lineage, "source_uri": ""}
    order = BuildOrder.from_json(row.order)
    built = {f"build.{name}": value for name, value in made.items()}
    return Lineage(
        **{
            **source,
            "parameters": {**source["parameters"], **built},
            "built_from": row.model_version.uri,
            "accelerator": order.accelerator,
            "products": order.products,
        }
    )


BUILD = JobKind(
    noun="build",
    model=Build,
    order=_job,
    work=as_job(progress=_progress, report=lambda result, _row: read_report(result), made=_store),
    write=_write,
    progress={"progress": {}},
    fresh={"digest": "", "size_bytes": 0},
    result=_files,
)
"""One at a time on a cluster: a plan's kernels are measured while it is built."""
