"""Build result: uploaded files, and their registration as a version."""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from common.errors import Conflict, FairleadError, NotFound
from integrations.artifacts.store import StoredArtifact
from integrations.clusters.base import JobIdentity
from jobs.domain import attempts
from jobs.services.claim import state_of, write_end
from model_jobs.builds.domain.order import BuildOrder
from model_jobs.builds.services.builds import BuildClaim, build_fail, held
from model_jobs.models import Build
from registry.domain.lineage import Lineage
from registry.domain.version_metadata import Particulars
from registry.models import ModelVersion
from registry.services import version_register
from registry.storage import store


def build_taker(*, cluster: str, identity: JobIdentity, result_id: uuid.UUID) -> None:
    """Raise NotFound unless the caller is the running build of that result on that cluster."""
    expected = identity.result_id == str(result_id)
    if not (expected and held(result_id).filter(cluster__name=cluster).exists()):
        raise NotFound(f"the pod {identity.pod} makes no result {result_id}")


def build_take(*, result_id: uuid.UUID, artifact: StoredArtifact) -> None:
    """Record the files of a build; raises Conflict where it no longer runs."""
    if not held(result_id).update(digest=artifact.digest, size_bytes=artifact.size_bytes):
        raise Conflict("what was built is not waited for any more: it was stopped, or is built anew elsewhere")


def build_end(*, claim: BuildClaim, report: Mapping[str, Any], now: datetime) -> ModelVersion | None:
    """Register the uploaded files as a version, and return it; None where the claim was lost meanwhile.

    The build has FAILED where the files are missing, or the version is refused, as a push would be.
    """
    try:
        with transaction.atomic():
            row = held(claim.id).select_for_update(of=("self",)).select_related("model_version__model").first()
            if row is None:
                return None
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
            write_end(row, attempts.done(state_of(row)), now)
            return row.version
    except FairleadError as error:
        build_fail(claim=claim, reason=error.message, now=now)
        return None


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
