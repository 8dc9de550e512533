"""Model imports: a service whose file names files elsewhere imports them as a model version, and serves that.

The model is called `<namespace>.<service>`, which no other service's can be. A new URI in the file starts an import; at
every tick of the worker (`import_follow`) the service records the progress of that and of the version's check, and in
the end rolls out the version as any other. The same URI again means the version that it became, not the present files.
"""

from datetime import datetime
from functools import partial

from django.db import transaction

from accounts.services import audit_record
from common.errors import FairleadError
from deployments.domain.service_file import STORAGE_URI, ServiceSpec, imported_model, parse_service
from deployments.models import InferenceService
from deployments.reconcile.service_change import Change, changing
from deployments.services.files.model_owners import give_to_team_of_namespace
from deployments.services.revisions.revision_change import turn_to
from events.domain.kinds import Kind
from jobs.services import hints
from registry.domain.import_lifecycle import ImportStatus
from registry.domain.version_lifecycle import Status
from registry.models import ModelImport
from registry.services.imports import import_add, import_order
from registry.tasks import import_model

_PLATFORM = "fairlead"
_MEGABYTE = 1_000_000


def must_import(service: InferenceService, before: ServiceSpec | None, spec: ServiceSpec) -> bool:
    """Return whether to import the files of `spec`: they never were, or the import failed."""
    if not spec.is_imported:
        return False
    if before is None or before.storage_uri != spec.storage_uri:
        return True
    awaited = service.awaited_import
    return service.model_version_id is None if awaited is None else awaited.ended_badly


def begin_import(change: Change, spec: ServiceSpec, *, actor: str) -> None:
    """Start the import of the files that the service's file names; raises InvalidInput where that is not allowed."""
    service, model, now = change.service, imported_model(spec.namespace, spec.name), change.now
    row = import_order(model=model, uri=spec.storage_uri, now=now, actor=actor, field=STORAGE_URI)
    change.write(partial(give_to_team_of_namespace, model, service.namespace, actor=actor, now=now))
    change.write(partial(import_add, row, actor=actor, now=now))
    service.awaited_import, service.import_note = row, note_of(row)
    if service.model_version_id is None:
        service.reason = service.import_note
    change.event(Kind.IMPORT_STARTED, f"{row.shown_uri} is imported as a version of model {model}")
    change.write(lambda: transaction.on_commit(partial(hints.send, import_model, row.pk)))


def note_of(row: ModelImport) -> str:
    """Return what the service waits for, as text; empty where the version can be served."""
    if row.status == ImportStatus.PENDING:
        done, total = _megabytes(row.bytes_done), row.bytes_total
        much = f"{done} MB" if total is None else f"{done} of {_megabytes(total)} MB"
        again = f" (attempt {row.attempts}, the last broke off: {row.reason})" if row.reason else ""
        return f"waiting for import: {much}{again}"
    if row.status == ImportStatus.FAILED:
        return f"{row.shown_uri} was not imported: {row.reason}; apply the file again to retry"
    if row.version is None:
        return f"the version that {row.shown_uri} became was deleted; apply the file again to import it"
    if row.version.status == Status.PENDING:
        return f"waiting for the check of {row.version}, which was imported"
    if row.version.status == Status.REJECTED:
        return f"{row.version}, which was imported, is REJECTED: {row.version.reason}"
    return ""


def import_follow(*, service_id: int, now: datetime) -> None:
    """Record the progress of the import that the service waits for, and roll out its version once that is READY."""
    services = InferenceService.objects.select_related("awaited_import__version__model")
    service = services.filter(pk=service_id, deleting_at=None).exclude(awaited_import=None).first()
    if service is None or service.awaited_import is None:
        return
    note = note_of(service.awaited_import)
    if not note:
        try:
            _turn(service_id, service.awaited_import, now)
            return
        except FairleadError as error:
            note = error.message
    if note != service.import_note:
        with changing(service_id, now=now) as change:
            if change.service.awaited_import_id == service.awaited_import_id:
                _record_event(change, service.awaited_import, note)


def _turn(service_id: int, awaited: ModelImport, now: datetime) -> None:
    version = awaited.version
    with changing(service_id, now=now) as change:
        service = change.service
        spec = parse_service(service.document, namespace=service.namespace, name=service.name)
        if version is None or service.awaited_import_id != awaited.pk or not spec.is_imported:
            return
        before = None if service.model_version is None else {"version": service.model_version.uri}
        service.model_version, service.awaited_import, service.import_note = version, None, ""
        change.event(Kind.MODEL_IMPORTED, f"{awaited.shown_uri} is {version} and READY")
        rollout = turn_to(
            change, spec=spec, version=version, policy=service.policy, actor=_PLATFORM, by="the imported version"
        )
        audit_record(
            actor=_PLATFORM,
            action="service.follow_import",
            target=f"services/{service.namespace}/{service.name}",
            now=now,
            before=before,
            after={"version": version.uri},
            detail={"import": awaited.pk, "rollout": None if rollout is None else rollout.pk},
        )


def _record_event(change: Change, awaited: ModelImport, note: str) -> None:
    change.service.import_note = note
    if awaited.ended_badly or not note_of(awaited):
        change.event(Kind.IMPORT_REFUSED, note)
    if change.service.model_version_id is None:
        change.service.reason = note


def _megabytes(count: int) -> str:
    megabytes = count / _MEGABYTE
    return f"{megabytes:.0f}" if megabytes >= 10 else f"{megabytes:.1f}"
