"""Import jobs: order, stop, and the kind: the files at a URI are fetched and become a version, as an upload's do."""

import logging
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import ProtectedError, Q

from accounts.services import audit_record
from common.errors import Conflict, FairleadError, InvalidInput, Unavailable
from common.identifiers import check_model_name
from common.uris import parse
from integrations import sources
from integrations.artifacts.store import StoredArtifact
from jobs.domain.attempts import AttemptState, Status
from jobs.services import claim as claims
from jobs.services.kinds import Driver, JobClaim, JobKind, Note, Pods
from registry.domain.import_lifecycle import RETRIES, ImportStatus
from registry.domain.version_metadata import Particulars, particulars_of_json
from registry.models import ModelImport
from registry.selectors import import_get
from registry.services import compatibility, version_register
from registry.services.quotas import check_quota
from registry.storage import store

logger = logging.getLogger(__name__)
MAX_CONCURRENT = 4
"""Concurrent imports of the whole installation; a worker downloads and unpacks each."""

_ACTOR = "fairlead"
_MAX_SOURCE_NAME = 255


@transaction.atomic
def import_request(
    *,
    model: str,
    uri: str,
    now: datetime,
    actor: str,
    filename: str = "",
    sha256: str = "",
    particulars: Particulars | None = None,
    field: str = "uri",
) -> ModelImport:
    """Order an import of the files at `uri` as the next version of `model`, and return it; raises as `import_order`."""
    row = import_order(
        model=model,
        uri=uri,
        now=now,
        actor=actor,
        filename=filename,
        sha256=sha256,
        particulars=particulars,
        field=field,
    )
    return import_add(row, actor=actor, now=now)


def import_order(
    *,
    model: str,
    uri: str,
    now: datetime,
    actor: str,
    filename: str = "",
    sha256: str = "",
    particulars: Particulars | None = None,
    field: str = "uri",
) -> ModelImport:
    """Return an import of the files at `uri` as the next version of `model`, for `import_add`. Writes nothing.

    Raises:
        InvalidInput: the URI, a name or a particular is wrong, or FAIRLEAD_IMPORT_FROM does not allow the URI.
        NotFound, Conflict: the version of its compatibility requirement does not exist, or is not READY.
        QuotaExceeded: the team that owns the model may have no further version.
    """
    check_model_name(model)
    said = particulars or Particulars()
    said.check()
    address = sources.check(uri, settings.IMPORT_FROM, filename=filename, field=field)
    if sha256 and (len(sha256) != 64 or set(sha256) - set("0123456789abcdef")):
        raise InvalidInput(f"sha256 is {sha256[:80]!r}; expected 64 hex digits in lower case", field="sha256")
    compatibility.requirement(model=model, asked=said.compatible_with)
    check_quota(model=model, size_bytes=0)
    return ModelImport(
        model=model,
        uri=address.url,
        filename=filename,
        sha256=sha256,
        particulars=asdict(said),
        next_try_at=now,
        created_at=now,
        created_by=actor,
    )


def import_add(row: ModelImport, *, actor: str, now: datetime) -> ModelImport:
    """Insert an ordered import, and return it; call it in the transaction of the change that orders it."""
    row.save()
    after = {"uri": row.shown_uri, "sha256": row.sha256}
    audit_record(actor=actor, action="model.import", target=_target(row), now=now, after=after)
    return row


@transaction.atomic
def import_stop(*, model: str, import_id: int, now: datetime, actor: str) -> None:
    """Stop an import; its worker notices when it renews its claim. Raises NotFound, and Conflict once it is over."""
    row = ModelImport.objects.select_for_update().filter(pk=import_id, model=model).first()
    row = row or import_get(model=model, import_id=import_id)
    if row.status != ImportStatus.PENDING.value:
        raise Conflict(f"import {import_id} of model {model!r} is {row.status}; only one that goes on can be stopped")
    claims.stop(IMPORT, row, now=now, reason=f"{actor} stopped it")
    _record_failure(row, f"{actor} stopped it", actor, now)


def imports_forget(*, now: datetime, older_than: timedelta) -> int:
    """Delete the imports that ended so long ago and return their number; their versions stay."""
    count = 0
    for row in ModelImport.objects.filter(finished_at__lt=now - older_than):
        with suppress(ProtectedError):  # a service still shows why the import that its file names failed
            row.delete()
            count += 1
    return count


def _order(row: ModelImport, _claim_id: UUID) -> sources.Order:
    return sources.Order(
        address=parse(row.uri),
        filename=row.filename,
        sha256=row.sha256,
        owner=f"import-{row.pk}",
        timeout_s=float(settings.IMPORT_TIMEOUT_S),
    )


def _fetched(claim: JobClaim[ModelImport, sources.Order], _driver: Driver, note: Note) -> StoredArtifact:
    """Return the stored files. Only a source that does not answer is tried again."""

    def count(done: int, total: int | None) -> None:
        note({"bytes_done": done, "bytes_total": total})

    try:
        return sources.fetch(claim.order, store(), settings.IMPORT_FROM, count)
    except Unavailable:
        raise
    except FairleadError as error:
        raise InvalidInput(error.message) from error
    except Exception as error:  # a bug of ours must not leave the import claimed and silent
        logger.exception("import %s failed", claim.row.pk)
        raise Unavailable(f"the import failed with {type(error).__name__}: {error}") from error


def _write(row: ModelImport, artifact: StoredArtifact, now: datetime) -> None:
    """Register the files as a version; raises where it is refused, as an upload would be."""
    row.version, _ = version_register(
        model=row.model,
        artifact=artifact,
        source_name=(row.filename or parse(row.uri).name)[:_MAX_SOURCE_NAME],
        now=now,
        actor=row.created_by,
        particulars=particulars_of_json(row.particulars, source_uri=parse(row.uri).shown),
    )
    row.bytes_done = row.bytes_total = artifact.size_bytes


def _ended(row: ModelImport, state: AttemptState, now: datetime) -> None:
    if state.status is Status.FAILED:
        _record_failure(row, state.reason, _ACTOR, now)


def _record_failure(row: ModelImport, reason: str, actor: str, now: datetime) -> None:
    audit_record(
        actor=actor,
        action="model.import_failed",
        target=_target(row),
        now=now,
        before={"status": ImportStatus.PENDING.value},
        after={"status": ImportStatus.FAILED.value, "reason": reason},
    )


def _target(row: ModelImport) -> str:
    return f"models/{row.model}/imports/{row.pk}"


IMPORT = JobKind(
    noun="import",
    model=ModelImport,
    order=_order,
    work=_fetched,
    write=_write,
    progress={"bytes_done": 0, "bytes_total": None},
    most=lambda _row: MAX_CONCURRENT,
    beside=lambda _row: Q(),
    cluster_of=lambda _row: 0,
    ended=_ended,
    related=(),
    pods=Pods.NONE,
    done=ImportStatus.IMPORTED.value,
    retries=RETRIES,
)
"""Runs in the worker: it needs no cluster."""
