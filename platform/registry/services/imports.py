"""Import jobs: order, claim, renewal with progress, end. None of these writes waits for bytes.

As for checks (`registry.services.version_checks`), an attempt is claimed by a conditional UPDATE that names the values
read, and the claim's id fences all later writes of its worker. The end is the same `version_register` as an upload's.
"""

import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import ProtectedError

from accounts.services import audit_record
from common.errors import Conflict, FairleadError, InvalidInput
from common.identifiers import check_model_name
from common.uris import parse
from integrations import sources
from integrations.artifacts.store import StoredArtifact
from registry.domain import import_lifecycle
from registry.domain.import_lifecycle import ImportState, ImportStatus
from registry.domain.version_metadata import Particulars, particulars_of_json
from registry.models import ModelImport
from registry.selectors import import_get
from registry.services import compatibility, version_register

MAX_CONCURRENT = 2
"""Concurrent imports of the whole installation; each takes one of the worker's threads."""

_ACTOR = "fairlead"
_MAX_SOURCE_NAME = 255


@dataclass(frozen=True, slots=True)
class ImportClaim:
    """Claim to run one import and to write its end."""

    id: uuid.UUID
    import_id: int
    uri: str
    filename: str
    sha256: str


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
    """
    check_model_name(model)
    said = particulars or Particulars()
    said.check()
    address = sources.check(uri, settings.IMPORT_FROM, filename=filename, field=field)
    if sha256 and (len(sha256) != 64 or set(sha256) - set("0123456789abcdef")):
        raise InvalidInput(f"sha256 is {sha256[:80]!r}; expected 64 hex digits in lower case", field="sha256")
    compatibility.requirement(model=model, asked=said.compatible_with)
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


def import_begin(*, import_id: int, now: datetime, lease: timedelta) -> ImportClaim | None:
    """Claim the import; None where it is not due, or the limit of concurrent imports is reached."""
    row = ModelImport.objects.filter(pk=import_id).first()
    if row is None or not import_lifecycle.may_begin(row.state, now):
        return None
    pending = ModelImport.objects.filter(status=ImportStatus.PENDING.value)
    if pending.filter(next_try_at__gt=now).exclude(claim=None).count() >= MAX_CONCURRENT:
        return None
    state = import_lifecycle.begin(row.state, now, lease)
    claim = ImportClaim(uuid.uuid4(), row.pk, row.uri, row.filename, row.sha256)
    begun = state.status is ImportStatus.PENDING
    with transaction.atomic():
        won = pending.filter(pk=row.pk, attempts=row.attempts, next_try_at=row.next_try_at, claim=row.claim).update(
            **_columns(state),
            claim=claim.id if begun else None,
            bytes_done=0,
            bytes_total=None,
            finished_at=None if begun else now,
        )
        if won and not begun:
            _record_failure(row, state.reason, _ACTOR, now)
    return claim if won and begun else None


def import_renew(*, claim: ImportClaim, done: int, total: int | None, now: datetime, lease: timedelta) -> bool:
    """Write the progress and renew the claim for another `lease`; False where it was lost and the work should stop."""
    held = ModelImport.objects.filter(pk=claim.import_id, status=ImportStatus.PENDING.value, claim=claim.id)
    return bool(held.update(bytes_done=done, bytes_total=total, next_try_at=now + lease))


def import_end(*, claim: ImportClaim, artifact: StoredArtifact, now: datetime) -> ModelImport | None:
    """Register the artifact as a version and return the import; None where the claim was lost meanwhile.

    The import has FAILED where the version is refused, as an upload's would be.
    """
    try:
        with transaction.atomic():
            row = _held(claim)
            if row is None:
                return None
            version, _ = version_register(
                model=row.model,
                artifact=artifact,
                source_name=(row.filename or parse(row.uri).name)[:_MAX_SOURCE_NAME],
                now=now,
                actor=row.created_by,
                particulars=particulars_of_json(row.particulars, source_uri=parse(row.uri).shown),
            )
            row.version = version
            row.bytes_done = row.bytes_total = artifact.size_bytes
            return _write(row, import_lifecycle.imported(row.state), now)
    except FairleadError as error:
        return import_fail(claim=claim, reason=error.message, now=now)


@transaction.atomic
def import_fail(*, claim: ImportClaim, reason: str, now: datetime) -> ModelImport | None:
    """Record a permanent failure; None where the claim was lost."""
    row = _held(claim)
    if row is None:
        return None
    _record_failure(row, reason, _ACTOR, now)
    return _write(row, import_lifecycle.failed(row.state, reason), now)


@transaction.atomic
def import_broke_off(*, claim: ImportClaim, reason: str, now: datetime) -> ModelImport | None:
    """Record a broken-off attempt; the sweep begins the next, unless it was the last. None: the claim was lost."""
    row = _held(claim)
    if row is None:
        return None
    state = import_lifecycle.broken_off(row.state, reason, now)
    if state.status is ImportStatus.FAILED:
        _record_failure(row, state.reason, _ACTOR, now)
    return _write(row, state, now)


@transaction.atomic
def import_put_back(*, claim: ImportClaim, now: datetime) -> None:
    """Release an attempt unfinished, for a worker that is shutting down; another may begin at once."""
    row = _held(claim)
    if row is not None:
        _write(row, import_lifecycle.put_back(row.state, now), now)


@transaction.atomic
def import_stop(*, model: str, import_id: int, now: datetime, actor: str) -> None:
    """Stop an import; its worker notices when it renews its claim. Raises NotFound, and Conflict once it is over."""
    row = ModelImport.objects.select_for_update().filter(pk=import_id, model=model).first()
    row = row or import_get(model=model, import_id=import_id)
    if row.status != ImportStatus.PENDING.value:
        raise Conflict(f"import {import_id} of model {model!r} is {row.status}; only one that goes on can be stopped")
    _record_failure(row, f"{actor} stopped it", actor, now)
    _write(row, import_lifecycle.failed(row.state, f"{actor} stopped it"), now)


def imports_forget(*, now: datetime, older_than: timedelta) -> int:
    """Delete the imports that ended so long ago and return their number; their versions stay."""
    count = 0
    for row in ModelImport.objects.filter(finished_at__lt=now - older_than):
        with suppress(ProtectedError):  # a service still shows why the import that its file names failed
            row.delete()
            count += 1
    return count


def _held(claim: ImportClaim) -> ModelImport | None:
    held = ModelImport.objects.filter(pk=claim.import_id, status=ImportStatus.PENDING.value, claim=claim.id)
    return held.select_for_update().first()


def _write(row: ModelImport, state: ImportState, now: datetime) -> ModelImport:
    for column, value in _columns(state).items():
        setattr(row, column, value)
    row.claim = None
    row.finished_at = None if state.status is ImportStatus.PENDING else now
    row.save()
    return row


def _columns(state: ImportState) -> dict[str, object]:
    return {
        "status": state.status.value,
        "attempts": state.attempts,
        "reason": state.reason,
        "next_try_at": state.next_try_at,
    }


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
