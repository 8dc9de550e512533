"""Rollback to an earlier revision, in one call."""

from datetime import datetime

from django.db import transaction
from django.db.models import Q

from accounts.services import audit_record
from common.errors import Conflict, NotFound
from deployments import mapping
from deployments.domain.phases import Phase
from deployments.domain.service_file import (
    RevisionContent,
    file_saying,
    stored_companion,
    stored_custom,
    stored_logger,
    stored_model_pool,
    stored_placement,
    stored_pod,
    stored_secret_env,
)
from deployments.domain.service_file.model import format_of
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService, Revision, Rollout
from deployments.reconcile import hints
from deployments.reconcile.service_change import Change, changing
from deployments.selectors import earlier_stable_query, revision_query, stable_before
from deployments.services.ownership import check_owner
from deployments.services.revisions.egress import check_egress, has_egress
from deployments.services.revisions.revision_change import begin_back, check_agreed, check_pod, check_ready
from deployments.services.revisions.secret_env import check_secrets
from deployments.services.services import service_named, spec_of
from integrations.clusters.base import CompanionKind
from registry.domain.approval import Approval


@transaction.atomic
def service_rollback(
    *, namespace: str, name: str, revision: str | None, actor: str, now: datetime, may_grant_egress: bool = False
) -> Rollout:
    """Start a rollout without steps to a former stable revision; one in progress is superseded.

    One that still runs gets all traffic at once. A stopped one is started again, the same revision under the same name,
    and gets all traffic when it is ready. The service's file then has that revision's content; a file with an alias
    follows it again when the alias moves next.

    Args:
        revision: its name, or its number in decimal; None for the former stable one.
        may_grant_egress: whether `actor` administers the installation, and so may give the service egress.

    Raises:
        InvalidInput: the revision names a secret that is missing.
        NotFound: no such service or revision.
        Conflict: the revision is live, being rolled out, or never was stable; it is the first; its version is not
            READY, or was declined, and its model requires approvals.
        NotPermitted: the revision has egress, which the service has lost since, and the actor may not grant it.
    """
    found = service_named(namespace, name)
    with changing(found.pk, now=now) as change:
        service = change.service
        if service.deleting_at is not None:
            raise Conflict(f"service {service} is being deleted, so there is no way back")
        check_owner(service)
        stable = _stable_of(change)
        earlier = _before(change, stable) if revision is None else _named(service, revision)
        _check(change, stable, earlier)
        check_ready(earlier.model_version)
        if earlier.model_version.approval == Approval.DECLINED:  # one that served before approvals were required may
            check_agreed(earlier.model_version)
        granted = check_egress(
            wanted=has_egress(earlier, service.cluster),
            before=spec_of(service),
            stable=stable,
            cluster=service.cluster,
            may_grant=may_grant_egress,
        )
        check_secrets(service.cluster, namespace, stored_secret_env(earlier.secret_env))
        check_pod(service.cluster, stored_pod(earlier.pod))
        row = begin_back(change, stable, earlier, actor=actor)
        _write_into_document(service, row.to_revision)
        audit_record(
            actor=actor,
            action="service.rollback",
            target=f"services/{namespace}/{name}",
            now=now,
            before={"revision": stable.name, "version": stable.model_version.uri},
            after={"revision": earlier.name, "version": earlier.model_version.uri},
            detail={"rollout": row.pk, **({"egress": "granted"} if granted else {})},
        )
    hints.reconcile_soon(found.pk)
    return row


def _stable_of(change: Change) -> Revision:
    stable = change.revision(Role.STABLE)
    if change.service.stopped:
        raise Conflict(f"service {change.service} is stopped, so there is no way back; resume it first")
    if stable is None or change.service.live_at is None:
        raise Conflict(f"service {change.service} does not serve yet, so there is nothing to go back to")
    return stable


def _before(change: Change, stable: Revision) -> Revision:
    before = stable_before(stable=stable)
    if before is None:
        raise Conflict(f"{stable.name} is the first revision that {change.service} served; no earlier revision exists")
    return before


def _named(service: InferenceService, revision: str) -> Revision:
    number = int(revision) if revision.isascii() and revision.isdecimal() and len(revision) < 10 else None
    found = revision_query(service=service).filter(Q(name=revision) | Q(number=number)).first()
    if found is None:
        raise NotFound(f"service {service} has no revision {revision[:80]!r}", field="revision")
    return found


def _check(change: Change, stable: Revision, earlier: Revision) -> None:
    if earlier.pk == stable.pk:
        raise Conflict(f"{earlier.name} is live already, so there is nothing to go back to")
    going = change.rollout
    if going is not None and going.to_revision_id == earlier.pk:
        raise Conflict(f"rollout {going.pk} to {earlier.name} is in progress already ({Phase(going.phase)})")
    if not earlier_stable_query(service_id=change.service.pk).filter(pk=earlier.pk).exists():
        raise Conflict(
            f"{earlier.name} was never the stable revision of {change.service}, so it is not known to be healthy; "
            f"start a rollout to version {earlier.model_version.number} instead"
        )


def _write_into_document(service: InferenceService, revision: Revision) -> None:
    """Write the revision's content into the service's file, so that applying another file is a change."""
    spec = spec_of(service)
    follows_alias = spec.follows_alias
    content = RevisionContent(
        storage_uri=None if follows_alias else revision.model_version.uri,
        model_format=format_of(revision.model_version.platform),
        scaling=mapping.scaling_of(revision),
        env=revision.env,
        secret_env=stored_secret_env(revision.secret_env),
        resources=mapping.resources_of(revision),
        model_config=revision.model_config,
        logger=stored_logger(revision.logger),
        patches=mapping.patches_of_service(revision),
        transformer=stored_companion(revision.transformer, CompanionKind.TRANSFORMER),
        explainer=stored_companion(revision.explainer, CompanionKind.EXPLAINER),
        custom=stored_custom(revision.custom),
        placement=stored_placement(revision.placement_wish),
        pod=stored_pod(revision.pod),
        model_pool=stored_model_pool(revision.model_pool),
        pool=revision.pool,
        own_scaling=mapping.own_scaling_of(revision),
        egress=None if spec.egress is None else has_egress(revision, service.cluster),
    )
    service.document = file_saying(service.document, spec, content)
    if not follows_alias:
        service.model_version = revision.model_version
        service.awaited_import, service.import_note = None, ""
