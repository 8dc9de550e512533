"""Renewal of a service: a new revision of the same content, by its own rollout policy."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from accounts.services import audit_record
from common.errors import Conflict
from deployments import mapping
from deployments.domain.service_state.desired import Role
from deployments.models import Rollout
from deployments.reconcile import hints
from deployments.reconcile.service_change import changing
from deployments.services.revisions.revision_change import begin, check_ready
from deployments.services.services import spec_of


@transaction.atomic
def rollout_renew(*, service_id: int, actor: str, now: datetime, by: str, detail: Mapping[str, object]) -> Rollout:
    """Start a rollout of a service to a new revision with the content of the present one.

    The new revision gets the present pod template; clients see the same model version throughout.

    Args:
        by: the cause, such as `upgrade 3 of the fleet`.
        detail: for the audit log.

    Raises:
        NotFound: no such service.
        Conflict: it does not serve, a rollout is in progress, its file is not live, or it does not fit; the message
            says which.
    """
    with changing(service_id, now=now) as change:
        service, stable, going = change.service, change.revision(Role.STABLE), change.rollout
        if service.deleting_at is not None or service.stopped or stable is None or service.live_at is None:
            raise Conflict(f"service {service} does not serve, so there is nothing to renew; it is {service.phase}")
        if going is not None:
            raise Conflict(f"rollout {going.pk} of service {service} is {going.phase}; let it end first")
        spec, version = spec_of(service), stable.model_version
        if not mapping.is_what(stable, spec, version.pk):
            raise Conflict(
                f"the file of service {service} is not what {stable.name} serves, so a new revision would change more "
                "than its pods; apply the file, or roll it back, first"
            )
        check_ready(version)
        row = begin(change, stable, spec=spec, version=version, policy=service.policy, actor=actor, by=by)
        audit_record(
            actor=actor,
            action="rollout.start",
            target=f"services/{service.namespace}/{service.name}",
            now=now,
            before={"revision": stable.name},
            after={"revision": row.to_revision.name},
            detail={"rollout": row.pk, **detail},
        )
    hints.reconcile_soon(service_id)
    return row
